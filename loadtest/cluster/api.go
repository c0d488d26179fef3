package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// Options say which API server, and how it is used.
type Options struct {
	// Kubeconfig names the file; without it the usual places are looked at. Context is one of the file's, the current
	// one by default.
	Kubeconfig, Context string
	// Workers is how many requests are under way at the same time.
	Workers int
	// CRDs is a file with Istio's definitions, for a server that lacks them; without it ones that let everything in are
	// made.
	CRDs string
	// Progress is called every second, and at the end.
	Progress func(Progress)
}

// api is an API server. Immutable; for use by many goroutines.
type api struct {
	kinds    map[string]kind // by name
	clients  map[schema.GroupVersion]rest.Interface
	raw      rest.Interface // for kinds that are no Go types
	metadata metadata.Interface
}

func connect(o Options) (*api, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.QPS = -1 // The server says when it is too much.
	config.UserAgent = "pilotd-loadtest"
	a := &api{kinds: map[string]kind{}, clients: map[schema.GroupVersion]rest.Interface{}}
	codecs, err := codecs()
	if err != nil {
		return nil, err
	}
	for _, k := range kinds() {
		a.kinds[k.name] = k
		if a.clients[k.group] != nil {
			continue
		}
		own := rest.CopyConfig(config)
		own.GroupVersion, own.NegotiatedSerializer, own.APIPath, own.ContentType = &k.group, codecs.WithoutConversion(),
			"/apis", runtime.ContentTypeProtobuf
		if k.group.Group == "" {
			own.APIPath = "/api"
			if a.raw, err = rest.UnversionedRESTClientFor(own); err != nil {
				return nil, err
			}
		}
		if k.group == networkingv1.SchemeGroupVersion {
			own.ContentType = runtime.ContentTypeJSON
		}
		if a.clients[k.group], err = rest.RESTClientFor(own); err != nil {
			return nil, err
		}
	}
	a.metadata, err = metadata.NewForConfig(config)
	return a, err
}

// of returns how to ask for objects of a kind.
func (a *api) of(k kind, namespace string) metadata.ResourceInterface {
	r := a.metadata.Resource(k.gvr())
	if k.cluster {
		return r
	}
	return r.Namespace(namespace)
}

// attempts is how often a write is tried: somebody else's may come before, or the server may have too much to do.
const attempts = 8

// put makes an object so, and returns its version. before is the version that is there, as far as is known.
func (a *api) put(ctx context.Context, k kind, o mesh.Object, before string) (version string, err error) {
	for n := range attempts {
		if k.frozen && before != "" {
			if err = a.remove(ctx, k, o); err != nil {
				return "", err
			}
			before = ""
		}
		o.SetResourceVersion(before)
		if version, err = a.send(ctx, k, o, before == ""); err == nil {
			return version, nil
		}
		switch {
		case apierrors.IsNotFound(err) && before != "":
			before = ""
		case apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err):
			if before, err = a.present(ctx, k, o); err != nil {
				return "", err
			}
		case transient(err):
			pause(ctx, n)
		default:
			return "", describe(k, o, err)
		}
	}
	return "", describe(k, o, err)
}

// transient reports whether an error is one of a server that may do better later. What was asked for may have been
// done.
func transient(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// pause waits before the attempt after the n-th.
func pause(ctx context.Context, n int) {
	timer := time.NewTimer(100 * time.Millisecond << n)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send creates or updates an object, and writes its status.
func (a *api) send(ctx context.Context, k kind, o mesh.Object, create bool) (string, error) {
	client := a.clients[k.group]
	r := client.Put().Name(o.GetName())
	if create {
		r = client.Post()
	}
	version, err := finish(ctx, r.NamespaceIfScoped(o.GetNamespace(), !k.cluster).Resource(k.resource).Body(o))
	if err != nil || !k.status {
		return version, err
	}
	return finish(ctx, client.Put().NamespaceIfScoped(o.GetNamespace(),
		!k.cluster).Resource(k.resource).Name(o.GetName()).SubResource("status").Body(o))
}

// finish makes a request that is answered with the object's metadata alone.
func finish(ctx context.Context, r *rest.Request) (string, error) {
	var got metav1.PartialObjectMetadata
	r.SetHeader("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json")
	err := r.Do(ctx).Into(&got)
	return got.ResourceVersion, err
}

// errForeign says that an object is not ours.
var errForeign = errors.New("is there, and was not made by a load test")

// present returns the version of an object that is there. It must be ours. It is empty when the object went meanwhile.
func (a *api) present(ctx context.Context, k kind, o mesh.Object) (string, error) {
	got, err := a.of(k, o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", describe(k, o, err)
	}
	if _, ours := got.Labels[label]; !ours {
		return "", describe(k, o, errForeign)
	}
	return got.ResourceVersion, nil
}

// remove deletes an object, at once. One that is gone already is no error.
func (a *api) remove(ctx context.Context, k kind, o metav1.Object) error {
	var now int64
	var err error
	for n := range attempts {
		if err = a.of(k, o.GetNamespace()).Delete(ctx, o.GetName(),
			metav1.DeleteOptions{GracePeriodSeconds: &now}); err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !transient(err) {
			break
		}
		pause(ctx, n)
	}
	return describe(k, o, err)
}

func describe(k kind, o metav1.Object, err error) error {
	if err == nil {
		return nil
	}
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Errorf("%s %s: %w", k.name, name, err)
}
