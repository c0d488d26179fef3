package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// watched is a single object that is watched by name.
type watched struct {
	cache.SharedIndexInformer
	key string
}

// watchSecret returns a watch of a Secret, whose run is to be called on a goroutine. It calls changed when the Secret
// has changed, and when it is first known whether it exists, and failed on errors.
func (a *API) watchSecret(namespace, name string, changed func(), failed func(error)) *watched {
	lw := cache.NewListWatchFromClient(a.core.RESTClient(), "secrets", namespace,
		fields.OneTermEqualSelector("metadata.name", name))
	w := &watched{cache.NewSharedIndexInformer(lw, &corev1.Secret{}, 0, nil), namespace + "/" + name}
	// Neither call fails before the informer runs.
	_, _ = w.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { changed() },
		UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() }})
	_ = w.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { failed(err) })
	return w
}

// secret returns the Secret, or nil if it does not exist.
func (w *watched) secret() *corev1.Secret {
	if o, ok, err := w.GetStore().GetByKey(w.key); ok && err == nil {
		return o.(*corev1.Secret)
	}
	return nil
}

// synced waits until it is known whether the object exists. It returns false if ctx ends first.
func (w *watched) synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), w.HasSynced)
}

// retry is the pause before something that failed is tried again.
const retry = 5 * time.Second
