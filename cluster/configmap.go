package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// FollowConfigMap calls tell with the data of a ConfigMap, now and each time it changes, and with nil if it does not
// exist, until ctx ends. It makes one call at a time.
func (a *API) FollowConfigMap(ctx context.Context, namespace, name string, tell func(data map[string]string)) {
	informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(a.core.RESTClient(), "configmaps", namespace,
		fields.OneTermEqualSelector("metadata.name", name)), &corev1.ConfigMap{}, 0, nil)
	changed := func(o any) {
		if c, ok := o.(*corev1.ConfigMap); ok {
			data := map[string]string{}
			for k, v := range c.Data {
				data[k] = v
			}
			tell(data)
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed,
		UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: func(any) { tell(nil) }})
	informer.RunWithContext(ctx)
}
