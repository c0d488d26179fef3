package kube

import (
	"cmp"
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// kind says how objects of one kind are asked for and read. Immutable.
type kind struct {
	name  value.Kind
	group schema.GroupVersion
	// of a custom kind, instead of group: those that it may be served in, the one to prefer first
	versions []schema.GroupVersion
	resource string
	inURL    string // the resource's name in URLs, where that is another one
	list     func() runtime.Object
	// namespace and fields limit the request.
	namespace, fields string
	// read makes the event's object of one that was decoded just now and belongs to nobody else: it keeps the used
	// fields alone.
	read func(any) (any, *ingest.Rejection)
	need
}

// scope is what the options limit the source to.
type scope struct {
	namespace, root, meshConfigMap string
	meshElsewhere                  bool
}

// wide is the need of a kind without namespaces, which pilotd can do without.
func (s scope) wide(loss string) need {
	return need{optional: true, loss: loss, excused: s.namespace != ""}
}

// mesh is the need of the mesh configuration. Without it the defaults would be in force, which may let through what it
// forbids: so it is waited for, unless it has another source, or rights in its namespace are not to be expected.
func (s scope) mesh() need {
	excused := s.meshElsewhere || s.namespace != "" && s.namespace != s.root
	return need{optional: excused, excused: excused,
		loss: "the mesh configuration is that of --meshConfig, or the default one"}
}

func newScope(o Options) scope {
	s := scope{namespace: o.Namespace, root: o.RootNamespace, meshConfigMap: "istio", meshElsewhere: o.MeshElsewhere}
	if s.root == "" {
		s.root = "istio-system"
	}
	if o.Revision != "" && o.Revision != "default" {
		s.meshConfigMap += "-" + o.Revision
	}
	return s
}

// coreKinds are the kinds that every server has.
func coreKinds(s scope) []kind {
	v1 := core.SchemeGroupVersion
	namespaces := ""
	if s.namespace != "" {
		namespaces = "metadata.name=" + s.namespace
	}
	return []kind{
		{name: value.KindNamespace, group: v1, resource: "namespaces", fields: namespaces,
			list: func() runtime.Object { return &core.NamespaceList{} }, read: keepNamespace,
			need: s.wide("what depends on the labels of namespaces has no effect")},
		{name: value.KindNode, group: v1, resource: "nodes", list: func() runtime.Object { return &core.NodeList{} },
			read: keepNode, need: s.wide("the localities of pods are unknown")},
		{
			name: value.KindPod, group: v1, resource: "pods", namespace: s.namespace,
			list: func() runtime.Object { return &core.PodList{} }, read: trimmed(),
			fields: "status.phase!=Failed,status.phase!=Succeeded", // They have given up their address.
		},
		{name: value.KindService, group: v1, resource: "services", namespace: s.namespace,
			list: func() runtime.Object { return &core.ServiceList{} }, read: keepService},
		{
			name: value.KindEndpointSlice, group: discovery.SchemeGroupVersion, resource: "endpointslices",
			namespace: s.namespace,
			list:      func() runtime.Object { return &discovery.EndpointSliceList{} }, read: trimmed(),
		},
		{
			name: value.KindMeshConfig, group: v1, resource: "configmaps", namespace: s.root,
			fields: "metadata.name=" + s.meshConfigMap,
			list:   func() runtime.Object { return &core.ConfigMapList{} }, read: readMesh, need: s.mesh(),
		},
	}
}

// key is the key of an object of this kind.
func (k kind) key(m meta.Object) value.ObjectKey {
	if k.name == value.KindMeshConfig {
		return value.ObjectKey{Kind: k.name, Name: "mesh"}
	}
	return value.ObjectKey{Kind: k.name, Namespace: m.GetNamespace(), Name: m.GetName()}
}

// page is how many objects a list asks for at a time.
const page = 500

// maxPages is how many pages a list may have: two million objects.
const maxPages = 4000

// requests are how a reflector lists and watches the kind. A list is what servers are asked for that have no stream of
// what there is. It comes in pages, of which each is cut down before the next is asked for: a server gives pages of the
// newest state alone.
func (k kind) requests(c rest.Interface, s *Source) (cache.ListWithContextFunc, cache.WatchFuncWithContext) {
	request := func(o *meta.ListOptions) *rest.Request {
		o.FieldSelector = k.fields
		return c.Get().NamespaceIfScoped(k.namespace, k.namespace != "").Resource(cmp.Or(k.inURL,
			k.resource)).VersionedParams(o, meta.ParameterCodec)
	}
	pages := 0
	list := func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
		if pages++; o.Continue == "" {
			pages = 1
		}
		if pages > maxPages {
			return nil, fmt.Errorf("the list of %s does not end: %d pages of %d objects came", k.resource, maxPages,
				page)
		}
		o.ResourceVersion, o.ResourceVersionMatch, o.Limit = "", "", cmp.Or(o.Limit, page)
		found, result := k.list(), request(&o).Do(ctx)
		s.outbox.progressed(k.resource)
		if err := result.Error(); err != nil {
			return nil, err
		}
		if err := result.Into(found); err != nil {
			if all, ok := k.arriveEach(result, s); ok {
				return all, nil
			}
			return nil, err
		}
		return k.arriveAll(found, s)
	}
	follow := func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
		o.Watch = true
		return request(&o).Watch(ctx)
	}
	return list, follow
}

// trimmed is a read of its own for one kind, which one reflector calls.
func trimmed() func(any) (any, *ingest.Rejection) {
	var t ingest.Trimmer
	return func(o any) (any, *ingest.Rejection) {
		switch whole := o.(type) {
		case *pod:
			o = &whole.Pod
		case *slice:
			o = &whole.EndpointSlice
		}
		return t.Trim(o), nil
	}
}

// readMesh takes the mesh configuration out of its ConfigMap.
func readMesh(o any) (any, *ingest.Rejection) {
	c, ok := o.(*core.ConfigMap)
	if !ok {
		return o, nil
	}
	text, ok := c.Data["mesh"]
	if !ok {
		return nil, &ingest.Rejection{Field: "data.mesh", Reason: "is missing in ConfigMap " + c.Name +
			": expected a MeshConfig in YAML"}
	}
	return text, nil
}
