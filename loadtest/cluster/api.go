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
	// Kubeconfig is the path of a file; if it is empty, the usual places are tried. Context is a context of the file;
	// empty means the current one.
	Kubeconfig, Context string
	// Workers is the number of requests in progress at the same time.
	Workers int
	// CRDs is a file with Istio's CRDs, for a server without them. If it is empty, CRDs that accept everything are
	// created.
	CRDs string
	// Progress is called every second, and at the end.
	Progress func(Progress)
}

// api is a client of an API server. Immutable; safe for concurrent use.
type api struct {
	kinds    map[string]kind // by name
	clients  map[schema.GroupVersion]rest.Interface
	raw      rest.Interface // for custom kinds
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
	config.QPS = -1 // no limit here: the server says when it is overloaded
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

// of returns the client for objects of a kind.
func (a *api) of(k kind, namespace string) metadata.ResourceInterface {
	r := a.metadata.Resource(k.gvr())
	if k.cluster {
		return r
	}
	return r.Namespace(namespace)
}

// attempts bounds the attempts of a write: another writer may interfere, or the server may be overloaded.
const attempts = 8

// put writes an object and returns its version. before is the version that the server has, as far as is known.
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

// transient reports whether a retry may succeed. The failed request may nevertheless have been executed.
func transient(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// pause waits before the attempt after the n-th one.
func pause(ctx context.Context, n int) {
	timer := time.NewTimer(100 * time.Millisecond << n)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send creates or updates an object, and its status.
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

// finish sends a request and decodes only the metadata of the answer.
func finish(ctx context.Context, r *rest.Request) (string, error) {
	var got metav1.PartialObjectMetadata
	r.SetHeader("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json")
	err := r.Do(ctx).Into(&got)
	return got.ResourceVersion, err
}

// errForeign says that an object was not created by the load test.
var errForeign = errors.New("is there, and was not made by a load test")

// present returns the version of an object on the server; empty if it was deleted meanwhile. It returns errForeign if
// the load test did not create it.
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

// remove deletes an object without a grace period. It is no error if the object does not exist.
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
