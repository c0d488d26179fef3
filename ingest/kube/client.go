package kube

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/pilotd/pilotd/ingest"
)

// clients are the REST clients of one server, which share connections and a rate limit. Immutable.
type clients struct {
	rest     map[schema.GroupVersion]rest.Interface
	metadata metadata.Interface
	http     *http.Client
}

// close closes idle connections.
func (c *clients) close() { c.http.CloseIdleConnections() }

func (c *clients) of(gv schema.GroupVersion) rest.Interface { return c.rest[gv] }

func newClients(o Options) (*clients, error) {
	cfg, err := RESTConfig(o)
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: cannot connect to %s: %w", cfg.Host, err)
	}
	c := &clients{http: transport, rest: map[schema.GroupVersion]rest.Interface{}}
	kubernetes := rest.CopyConfig(cfg)
	kubernetes.ContentType, kubernetes.AcceptContentTypes = runtime.ContentTypeProtobuf,
		runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	kubernetes.NegotiatedSerializer = builtinCodecs().WithoutConversion()
	custom := rest.CopyConfig(cfg)
	custom.ContentType = runtime.ContentTypeJSON
	custom.NegotiatedSerializer = customCodecs().WithoutConversion()
	for _, k := range ingest.Kinds() {
		with := custom
		if k.Builtin {
			with = kubernetes
		}
		for _, gv := range k.GroupVersions() {
			if _, ok := c.rest[gv]; ok {
				continue
			}
			if err := c.add(gv, with, transport); err != nil {
				return nil, err
			}
		}
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), transport); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return c, nil
}

// add makes the client of one group and version.
func (c *clients) add(gv schema.GroupVersion, cfg *rest.Config, transport *http.Client) error {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	if gv.Group == "" {
		cfg.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(cfg, transport)
	if err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	c.rest[gv] = client
	return nil
}

// RESTConfig returns the server's address and the credentials, with the rate limits of the options.
func RESTConfig(o Options) (*rest.Config, error) {
	cfg := o.Config
	if cfg == nil {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = o.Kubeconfig
		var err error
		if cfg, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
			&clientcmd.ConfigOverrides{}).ClientConfig(); err != nil {
			return nil, fmt.Errorf("kube: no API server to read from: expected a kubeconfig file, or to run in a pod: %w", err)
		}
	}
	cfg = rest.CopyConfig(cfg)
	qps, burst := o.QPS, o.Burst
	if qps == 0 {
		qps = 80
	}
	if burst == 0 {
		burst = 160
	}
	cfg.QPS, cfg.Burst, cfg.RateLimiter = qps, burst, flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next, silence} })
	if cfg.UserAgent == "" {
		cfg.UserAgent = "pilotd"
	}
	return cfg, nil
}
