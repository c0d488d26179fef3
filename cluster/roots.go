package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// rootsName is the name of the ConfigMap that pods mount, rootsKey the key in it.
	rootsName = "istio-ca-root-cert"
	rootsKey  = "root-cert.pem"
	// rootsWriters is how many ConfigMaps are written at the same time.
	rootsWriters = 4
)

// Roots are the settings of PublishRoots.
type Roots struct {
	// Text returns all roots in PEM; empty while they are not known.
	Text func() string
	// Changed receives a value when Text has changed.
	Changed <-chan struct{}
	// Log is the logger.
	Log *slog.Logger
}

// rootsWriter writes roots into namespaces.
type rootsWriter struct {
	// Immutable.
	api              *API
	roots            Roots
	namespaces, maps cache.SharedIndexInformer
	queue            workqueue.TypedRateLimitingInterface[string] // of names of namespaces
}

// PublishRoots writes the ConfigMap istio-ca-root-cert into every namespace except Kubernetes's own, and keeps it up to
// date until ctx ends. Only the leader calls it.
func (a *API) PublishRoots(ctx context.Context, r Roots) {
	w := a.newRootsWriter(r)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.namespaces.RunWithContext(ctx) })
	all.Go(func() { w.maps.RunWithContext(ctx) })
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), w.namespaces.HasSynced, w.maps.HasSynced) {
		w.queue.ShutDown()
		return
	}
	for range rootsWriters {
		all.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Changed:
			for _, ns := range w.namespaces.GetStore().ListKeys() {
				w.queue.Add(ns)
			}
		}
	}
}

func (a *API) newRootsWriter(r Roots) *rootsWriter {
	w := &rootsWriter{api: a, roots: r,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	client := a.core.RESTClient()
	w.namespaces = cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(client, "namespaces", "", fields.Everything()), &corev1.Namespace{}, 0, nil)
	w.maps = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client, "configmaps", "",
		fields.OneTermEqualSelector("metadata.name", rootsName)), &corev1.ConfigMap{}, 0, nil)
	_ = w.namespaces.SetTransform(trimmed) // fails only while the informer runs
	_ = w.maps.SetTransform(trimmed)
	add := func(o any) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		switch o := o.(type) {
		case *corev1.Namespace:
			w.queue.Add(o.Name)
		case *corev1.ConfigMap:
			w.queue.Add(o.Namespace)
		}
	}
	for _, i := range []cache.SharedIndexInformer{w.namespaces, w.maps} {
		_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, DeleteFunc: add,
			UpdateFunc: func(_, o any) { add(o) }})
	}
	return w
}

// trimmed returns what the cache keeps of an object. Of a ConfigMap that is a hash of the roots, because there is one
// in every namespace.
func trimmed(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name, ResourceVersion: o.ResourceVersion},
			Status: o.Status}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name,
			ResourceVersion: o.ResourceVersion}, Data: map[string]string{rootsKey: digest(o.Data[rootsKey])}}, nil
	}
	return o, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// next handles one namespace of the queue. It returns false when the queue is shut down.
func (w *rootsWriter) next(ctx context.Context) bool {
	namespace, shut := w.queue.Get()
	if shut {
		return false
	}
	defer w.queue.Done(namespace)
	if err := w.write(ctx, namespace); err != nil && ctx.Err() == nil {
		w.roots.Log.Warn("the roots cannot be written into a namespace", "namespace", namespace, "error", err)
		w.queue.AddRateLimited(namespace)
		return true
	}
	w.queue.Forget(namespace)
	return true
}

// write writes the roots into a namespace, unless it has them.
func (w *rootsWriter) write(ctx context.Context, namespace string) error {
	text := w.roots.Text()
	o, there, _ := w.namespaces.GetStore().GetByKey(namespace)
	if text == "" || !there || passedOver(o.(*corev1.Namespace)) {
		return nil
	}
	maps := w.api.core.ConfigMaps(namespace)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rootsName,
		Labels: map[string]string{"istio.io/config": "true"}}, Data: map[string]string{rootsKey: text}}
	known, there, _ := w.maps.GetStore().GetByKey(namespace + "/" + rootsName)
	if there && known.(*corev1.ConfigMap).Data[rootsKey] == digest(text) {
		return nil
	}
	if !there {
		if _, err := maps.Create(ctx, m, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return leaving(err)
		}
	}
	have, err := maps.Get(ctx, rootsName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if have.Data == nil {
		have.Data = map[string]string{}
	}
	have.Data[rootsKey] = text
	_, err = maps.Update(ctx, have, metav1.UpdateOptions{})
	return leaving(err)
}

// leaving returns err, or nil if err says that the namespace is being deleted.
func leaving(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// passedOver reports whether a namespace is Kubernetes's own, or is being deleted.
func passedOver(n *corev1.Namespace) bool {
	switch n.Name {
	case "kube-system", "kube-public", "kube-node-lease", "local-path-storage":
		return true
	}
	return n.Status.Phase == corev1.NamespaceTerminating
}
