package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// ProxyConfig is a ProxyConfig object.
type ProxyConfig struct {
	Namespace, Name string
	Labels          map[string]string
	Created         time.Time
	// Spec is the specification, in JSON.
	Spec []byte
}

// Surroundings are facts about a cluster that injection needs besides its settings: annotations of namespaces, versions
// of nodes, and ProxyConfig objects. If a kind cannot be read, it counts as having no objects. Safe for concurrent use.
type Surroundings struct {
	// Immutable after NewSurroundings.
	namespaces, nodes, proxies cache.SharedIndexInformer
	changed                    chan struct{}
	log                        *slog.Logger
}

// byNative is the index of nodes by whether they support native sidecars. With it no pod's injection goes through all
// nodes.
const byNative = "native"

// nativeSince is the version of Kubernetes since which native sidecars are stable.
const nativeSince = "1.33.0-0"

// NewSurroundings makes Surroundings, which are empty before Run.
func NewSurroundings(api *API, log *slog.Logger) *Surroundings {
	s := &Surroundings{changed: make(chan struct{}, 1), log: log}
	s.namespaces = s.informer(cache.NewListWatchFromClient(api.core.RESTClient(), "namespaces", "",
		fields.Everything()), &corev1.Namespace{}, keepAnnotations)
	s.nodes = s.informer(cache.NewListWatchFromClient(api.core.RESTClient(), "nodes", "", fields.Everything()),
		&corev1.Node{}, keepVersion)
	// This fails only while the informer runs.
	_ = s.nodes.AddIndexers(cache.Indexers{byNative: func(node any) ([]string, error) {
		return []string{strconv.FormatBool(native(node))}, nil
	}})
	configs := api.dynamic.Resource(schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1beta1",
		Resource: "proxyconfigs"})
	s.proxies = s.informer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return configs.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return configs.Watch(ctx, o)
		}}, &unstructured.Unstructured{}, nil)
	wake := func(any) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	// This fails only while the informer runs.
	_, _ = s.proxies.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake,
		UpdateFunc: func(_, o any) { wake(o) }})
	return s
}

// informer makes an informer that keeps of each object only the result of keep.
func (s *Surroundings) informer(lw cache.ListerWatcher, of runtime.Object,
	keep cache.TransformFunc) cache.SharedIndexInformer {
	i := cache.NewSharedIndexInformer(lw, of, 0, cache.Indexers{})
	_ = i.SetTransform(keep) // fails only while it runs, as does the next call
	_ = i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		s.log.Debug("what injection needs to know of the cluster cannot be read", "error", err)
	})
	return i
}

// keepAnnotations keeps of a Namespace only the annotations that OpenShift writes.
func keepAnnotations(o any) (any, error) {
	n, ok := o.(*corev1.Namespace)
	if !ok {
		return o, nil
	}
	out := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion}}
	for k, v := range n.Annotations {
		if strings.HasPrefix(k, "openshift.io/") {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, k, v)
		}
	}
	return out, nil
}

// keepVersion keeps of a Node only its kubelet's version.
func keepVersion(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion}}
	out.Status.NodeInfo.KubeletVersion = n.Status.NodeInfo.KubeletVersion
	return out, nil
}

// Run reads the cluster until ctx ends, and calls tell with the ProxyConfig objects each time they have changed.
func (s *Surroundings) Run(ctx context.Context, tell func([]ProxyConfig)) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, i := range []cache.SharedIndexInformer{s.namespaces, s.nodes, s.proxies} {
		all.Go(func() { i.RunWithContext(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
			tell(s.proxyConfigs())
		}
	}
}

// proxyConfigs returns the objects, ordered by name.
func (s *Surroundings) proxyConfigs() (out []ProxyConfig) {
	for _, o := range s.proxies.GetStore().List() {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		spec, err := json.Marshal(u.Object["spec"])
		if err != nil {
			continue // it was decoded from JSON, so it can be encoded
		}
		out = append(out, ProxyConfig{Namespace: u.GetNamespace(), Name: u.GetName(), Labels: u.GetLabels(),
			Created: u.GetCreationTimestamp().Time, Spec: spec})
	}
	slices.SortFunc(out, func(a, b ProxyConfig) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// Annotations returns the annotations of a namespace that OpenShift writes. Callers must not change the map.
func (s *Surroundings) Annotations(namespace string) map[string]string {
	if o, ok, err := s.namespaces.GetStore().GetByKey(namespace); ok && err == nil {
		return o.(*corev1.Namespace).Annotations
	}
	return nil
}

// Native reports whether a pod can have a native sidecar: whether its node supports it, or all nodes if the node is not
// known yet. It returns false for a cluster without known nodes.
func (s *Surroundings) Native(node string) bool {
	if o, ok, err := s.nodes.GetStore().GetByKey(node); ok && err == nil {
		return native(o)
	}
	known := s.nodes.GetIndexer().ListIndexFuncValues(byNative)
	return len(known) == 1 && known[0] == strconv.FormatBool(true)
}

func native(node any) bool {
	v, err := version.ParseSemantic(node.(*corev1.Node).Status.NodeInfo.KubeletVersion)
	return err == nil && v.AtLeast(version.MustParseSemantic(nativeSince))
}
