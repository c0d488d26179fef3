package secure

import (
	"context"
	"encoding/pem"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/cluster/leader"
	"github.com/pilotd/pilotd/identity/authn"
	"github.com/pilotd/pilotd/status"
)

// Run keeps the authority and the certificates current until ctx ends, and does the leader's work while this replica
// leads.
func (s *Server) Run(ctx context.Context) error {
	o := s.options
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(o.Log.Handler())) // the logger of client-go
	var all sync.WaitGroup
	defer all.Wait()
	told := func(err error) { o.Log.Error("files are not taken", "error", err) }
	if o.CertFile != "" {
		all.Go(func() { s.serving.watch(ctx, o.Every(filesEvery), told) })
	}
	if s.files {
		all.Go(func() { s.Keeper.WatchDir(ctx, o.CADir, o.Every(filesEvery), told) })
	}
	if s.secrets != nil {
		all.Go(func() { s.secrets.Run(ctx) })
	}
	if o.Tokens != nil {
		all.Go(func() { s.vigil.run(ctx, o.Every(vigilEvery)) })
	}
	if s.agents != nil {
		all.Go(func() { s.agents.Run(ctx) })
	}
	if o.API == nil || s.service == nil && s.webhookRoots() == "" && o.Lead == nil {
		return nil
	}
	name := leaseName
	if o.Revision != "" && o.Revision != "default" {
		name += "-" + o.Revision
	}
	return leader.Run(ctx, leader.Options{Leases: o.API.Leases, Namespace: o.Namespace, Name: name, Holder: o.Holder,
		Log: o.Log}, s.lead)
}

// lead does the work that only one replica of a revision does, until ctx ends.
func (s *Server) lead(ctx context.Context) {
	o := s.options
	var all sync.WaitGroup
	defer all.Wait()
	if s.secrets != nil {
		all.Go(func() { s.secrets.Renew(ctx, o.Every(o.RenewEvery)) })
	}
	if s.service != nil {
		all.Go(func() {
			o.API.PublishRoots(ctx, cluster.Roots{Text: s.rootsText, Changed: s.rootsChanged[0], Log: o.Log})
		})
	}
	if o.Lead != nil {
		all.Go(func() { o.Lead(ctx) })
	}
	o.API.KeepWebhooks(ctx, cluster.Webhooks{Revision: o.Revision, Roots: s.webhookRoots, Changed: s.rootsChanged[1],
		Log: o.Log})
}

// webhookRoots returns the roots with which API servers verify the certificate of the webhooks, which is the one served
// here; empty while they are unknown. The roots of a certificate from files are in RootFile, if it is set.
func (s *Server) webhookRoots() string {
	if s.options.CertFile == "" {
		return s.rootsText()
	}
	var out strings.Builder
	for _, c := range s.own {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // writing to a Builder cannot fail
	}
	return out.String()
}

// rootsText returns all roots that workloads trust; empty while there is no authority.
func (s *Server) rootsText() string {
	if a := s.Keeper.Authority(); a != nil {
		return a.Roots()
	}
	return ""
}

// Metrics registers the metrics of this package.
func (s *Server) Metrics(m *status.Metrics) {
	s.doorMetrics(m)
	for r := range authn.Reason(authn.NumReasons) {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pilotd_authentication_failures_total", Help: "Callers that were refused, by reason.",
			ConstLabels: prometheus.Labels{"reason": r.String()},
		}, func() float64 { return float64(s.refused[r].Load()) }))
	}
	if s.service == nil {
		return
	}
	for c := range ca.Outcome(ca.NumOutcomes) {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pilotd_certificate_requests_total", Help: "Requests for certificates, by how they ended.",
			ConstLabels: prometheus.Labels{"outcome": c.String()},
		}, func() float64 { return float64(s.service.Outcomes()[c]) }))
	}
	m.Counter("citadel_server_csr_count", "Requests for certificates.", func() (n float64) {
		for _, c := range s.service.Outcomes() {
			n += float64(c)
		}
		return n
	})
	m.Counter("citadel_server_success_cert_issuance_count", "Certificates that were issued.",
		func() float64 { return float64(s.service.Outcomes()[ca.Issued]) })
	m.Counter("citadel_server_authentication_failure_count", "Requests for certificates of callers that were refused.",
		func() float64 { return float64(s.service.Outcomes()[ca.Unauthenticated]) })
	m.Gauge("citadel_server_root_cert_expiry_timestamp",
		"When the certificate authority cannot sign any more, in seconds since 1970; 0 while there is none.",
		func() float64 {
			if a := s.Keeper.Authority(); a != nil {
				return float64(a.NotAfter().Unix())
			}
			return 0
		})
}

// Ticker returns a channel that ticks every d, for Options.Every.
func Ticker(d time.Duration) <-chan time.Time { return time.Tick(d) }
