package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// watched is one object, watched by name.
type watched struct {
	cache.SharedIndexInformer
	key string
}

// watchSecret watches a Secret until ctx ends. changed is told when it has changed, and when it is known for the first
// time whether it is there; failed of errors. run is to be called in a goroutine.
func (a *API) watchSecret(namespace, name string, changed func(), failed func(error)) *watched {
	lw := cache.NewListWatchFromClient(a.core.RESTClient(), "secrets", namespace,
		fields.OneTermEqualSelector("metadata.name", name))
	w := &watched{cache.NewSharedIndexInformer(lw, &corev1.Secret{}, 0, nil), namespace + "/" + name}
	// Neither fails before the informer runs.
	_, _ = w.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { changed() },
		UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() }})
	_ = w.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { failed(err) })
	return w
}

// secret returns the Secret; nil if there is none.
func (w *watched) secret() *corev1.Secret {
	if o, ok, err := w.GetStore().GetByKey(w.key); ok && err == nil {
		return o.(*corev1.Secret)
	}
	return nil
}

// synced waits until it is known whether the object is there; false when ctx ends before.
func (w *watched) synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), w.HasSynced)
}

// retry is how long after something failed it is tried again.
const retry = 5 * time.Second
