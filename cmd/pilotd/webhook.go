package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/cmd/pilotd/secure"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/kube"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/admission"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/status"
)

// webhookStreams bounds the requests in progress on one connection. Each has its header in memory and waits for its
// turn to be read.
const webhookStreams = 100

// webhook injects pods for API servers, and validates objects.
type webhook struct {
	// Immutable after newWebhook.
	live            *inject.Live
	handler         *admission.Handler
	validator       *validator
	namespace, name string // of the injector's ConfigMap
	log             *slog.Logger
	// reports receives the problems of ProxyConfig objects. It is set before follow.
	reports *report.Registry
	// around is what the injector needs to know about the cluster; nil until it is read.
	around atomic.Pointer[cluster.Surroundings]
}

func newWebhook(o *options, log *slog.Logger) *webhook {
	log = log.With(scopeKey, "injector")
	w := &webhook{namespace: o.namespace, name: inject.ConfigMapName(o.revision), log: log,
		validator: newValidator(o.maxRegexSize, log),
		live: inject.NewLive(inject.Settings{DefaultProxy: ingest.DefaultMesh().GetDefaultConfig(), Revision: o.revision,
			NativeSidecars:   strings.EqualFold(os.Getenv("ENABLE_NATIVE_SIDECARS"), "true"),
			CompliancePolicy: os.Getenv("COMPLIANCE_POLICY")})}
	w.handler = admission.New(admission.Options{Injector: w.live.Injector, Now: time.Now, Log: log,
		NamespaceAnnotations: func(namespace string) map[string]string {
			if a := w.around.Load(); a != nil {
				return a.Annotations(namespace)
			}
			return nil
		},
		NativeSidecars: func(node string) bool {
			a, set := w.around.Load(), os.Getenv("ENABLE_NATIVE_SIDECARS")
			return a != nil && (set == "" || strings.EqualFold(set, "auto")) && a.Native(node)
		}})
	return w
}

// listen opens the port, if there is, or will be, a certificate for it, and an API server that could ask. API servers
// present no client certificate.
func (w *webhook) listen(o *options, s *secure.Server, log *slog.Logger) (*webServer, error) {
	if o.httpsAddr == "" || !o.kubernetes() {
		return nil, nil
	}
	if !s.Serves() {
		log.Info("not served: there is neither a serving certificate nor a certificate authority", "flag", "--httpsAddr",
			"address", o.httpsAddr)
		return nil, nil
	}
	l, err := listen("--httpsAddr", o.httpsAddr)
	if err != nil || l == nil {
		return nil, err
	}
	config := s.TLS()
	config.ClientAuth, config.NextProtos = tls.NoClientCert, []string{"h2", "http/1.1"}
	mux := http.NewServeMux()
	mux.Handle("/inject", w.handler)
	mux.Handle("/inject/", w.handler)
	validation := w.validator.handler()
	mux.Handle("/validate", validation)
	mux.Handle("/validate/", validation)
	server := newPageServer(mux, log)
	server.TLSConfig, server.HTTP2 = config, &http.HTTP2Config{MaxConcurrentStreams: webhookStreams}
	return &webServer{tls.NewListener(l, config), server}, nil
}

// collect registers the webhook's metrics.
func (w *webhook) collect(m *status.Metrics) {
	w.validator.failed = m.Refused
	m.Registry.MustRegister(w.validator.passed)
	for _, c := range w.handler.Collectors() {
		m.Registry.MustRegister(c)
	}
}

// follow loads the injector's ConfigMap whenever it changes, until ctx ends. Without the ConfigMap no pod is injected.
func (w *webhook) follow(ctx context.Context, o *options) error {
	config, err := kube.RESTConfig(kubeOptions(o, nil, w.log, false))
	if err != nil {
		return err
	}
	api, err := cluster.New(config)
	if err != nil {
		return err
	}
	around := cluster.NewSurroundings(api, w.log)
	w.around.Store(around)
	var all sync.WaitGroup
	defer all.Wait()
	configs := newProxyConfigs(o.revision, w.reports)
	all.Go(func() {
		around.Run(ctx, func(all []cluster.ProxyConfig) {
			if err := w.live.SetProxyConfigs(configs.take(all)); err != nil {
				w.log.Error("ProxyConfigs are not taken; the last good ones stay", "error", err)
			}
		})
	})
	api.FollowConfigMap(ctx, w.namespace, w.name, func(data map[string]string) {
		if data == nil {
			w.log.Warn("the injector's ConfigMap is gone; its last settings stay", "namespace", w.namespace, "name", w.name)
			return
		}
		if err := w.live.SetConfigMap(data); err != nil {
			w.log.Error("the injector's ConfigMap is not taken; the last good one stays", "namespace", w.namespace, "name",
				w.name, "error", err)
		}
	})
	return nil
}

// meshTap is a Sink that passes everything on to another one, and shows the mesh configuration to the webhook.
type meshTap struct {
	ingest.Sink
	to      *webhook
	sources func() int // returns the number of sources

	mu sync.Mutex
	// Guarded by mu.
	synced map[string]bool
	given  bool // some source has a mesh configuration
}

// Apply implements ingest.Sink.
func (t *meshTap) Apply(events []ingest.Event) {
	t.Sink.Apply(events)
	for _, e := range events {
		if e.Key.Kind == value.KindMeshConfig {
			text, _ := e.Object.(string) // no text: the defaults
			t.take(text)
		}
	}
}

// Synced implements ingest.Sink. If no source has a mesh configuration, the defaults are used.
func (t *meshTap) Synced(source string) {
	t.Sink.Synced(source)
	t.mu.Lock()
	t.synced[source] = true
	none := !t.given && len(t.synced) == t.sources()
	t.mu.Unlock()
	if none {
		t.take("")
	}
}

func (t *meshTap) take(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.given = true
	mesh, err := ingest.ParseMesh(text)
	if err == nil {
		err = t.to.live.SetMesh(mesh)
	}
	if err != nil {
		t.to.log.Error("the mesh configuration is not taken; the last good one stays", "error", err)
	}
}
