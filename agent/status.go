package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/agent/probe"
	"github.com/pilotd/pilotd/agent/status"
	"github.com/pilotd/pilotd/agent/xdsproxy"
)

// errDraining is the reason for unreadiness once the pod ends.
var errDraining = errors.New("the pod ends")

// checkReady returns nil if the pod is ready.
func (a *agent) checkReady(ctx context.Context) error {
	if a.draining.Load() {
		return errDraining
	}
	if err := a.hasNames(); err != nil {
		return err
	}
	if a.envoy == nil {
		return nil
	}
	return a.ready.Check(ctx, a.admin)
}

// listenStatus opens the agent's status port, unless it is 0. The returned function closes it.
func (a *agent) listenStatus() (func(), error) {
	port := a.pod.Config.StatusPort
	if port == 0 {
		return func() {}, nil
	}
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "istio_agent_scrape_failures_total",
		Help: "Metrics that were not there when they were asked for, by source."}, []string{"type"})
	a.registry.MustRegister(failures)
	o := status.Options{Ready: a.checkReady, Log: a.log.With("scope", "status"),
		Metrics: status.Metrics{Agent: a.registry, Failures: failures},
		Quit:    func() { a.quit(errAsked) },
		Drain:   func(ctx context.Context) error { return a.drain(ctx) }}
	if a.envoy != nil {
		o.Admin = a.admin
	}
	if a.names != nil {
		o.Names = a.names.JSON
	}
	var err error
	if o.Probes, err = probe.ReadAll(a.pod.Env.Text("ISTIO_KUBE_APP_PROBERS", "")); err != nil {
		return nil, fmt.Errorf("environment variable ISTIO_KUBE_APP_PROBERS: %w", err)
	}
	o.Asker = a.asker()
	annotations := a.pod.Env.Text("ISTIO_PROMETHEUS_ANNOTATIONS", "")
	if o.Metrics.Application, err = status.ApplicationPage(annotations, int(port)); err != nil {
		return nil, fmt.Errorf("environment variable ISTIO_PROMETHEUS_ANNOTATIONS: %w", err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, fmt.Errorf("the agent's port: %w", err)
	}
	s := status.New(o)
	a.work.Go(func() { _ = s.Serve(l) })
	return func() { _ = s.Close() }, nil
}

// drain drains Envoy before the pod ends.
func (a *agent) drain(ctx context.Context) error {
	if a.envoy == nil {
		return nil
	}
	return a.envoy.Drain(ctx, a.admin, a.ending)
}

// asker returns an Asker that probes the application at the pod's address, from the source address that the capture
// rules let pass.
func (a *agent) asker() probe.Asker {
	if a.pod.Env.Bool("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", false) {
		if a.pod.IPv6Only() {
			return probe.Asker{Host: netip.IPv6Loopback()}
		}
		return probe.Asker{Host: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	host := a.pod.IP()
	from := netip.AddrFrom4([4]byte{127, 0, 0, 6})
	if host.Is6() {
		from = netip.AddrFrom16([16]byte{15: 6})
	}
	return probe.Asker{Host: host, From: from}
}

// watchHealth probes the application as ProxyConfig's readinessProbe says, and reports changes to the control plane.
func (a *agent) watchHealth(ctx context.Context) error {
	given := a.pod.Config.GetReadinessProbe()
	p, err := readinessProbe(given)
	if err != nil {
		return fmt.Errorf("ProxyConfig: readinessProbe: %w", err)
	}
	seconds := func(n, otherwise int32) time.Duration { return time.Duration(cmp.Or(n, otherwise)) * time.Second }
	s := probe.Schedule{Delay: seconds(given.InitialDelaySeconds, 0), Period: seconds(given.PeriodSeconds, 10),
		Success: int(cmp.Or(given.SuccessThreshold, 1)), Failure: int(cmp.Or(given.FailureThreshold, 3))}
	asker := a.asker()
	a.work.Go(func() {
		asker.Watch(ctx, p, s, func(err error) {
			said := xdsproxy.Health{}
			if err != nil {
				said.Problem = err.Error()
			}
			a.health.Set(&said)
		})
	})
	return nil
}

// readinessProbe converts a probe of ProxyConfig to one of a pod.
func readinessProbe(r *v1alpha3.ReadinessProbe) (*probe.Probe, error) {
	out := &probe.Probe{TimeoutSeconds: r.GetTimeoutSeconds()}
	port := func(n uint32) (probe.Port, error) {
		if n == 0 || n > 65535 {
			return 0, fmt.Errorf("port %d: want a number from 1 to 65535", n)
		}
		return probe.Port(n), nil
	}
	var err error
	switch h := r.GetHealthCheckMethod().(type) {
	case *v1alpha3.ReadinessProbe_HttpGet:
		out.HTTP = &probe.HTTP{Path: h.HttpGet.Path, Host: h.HttpGet.Host, Scheme: h.HttpGet.Scheme}
		for _, one := range h.HttpGet.HttpHeaders {
			out.HTTP.Headers = append(out.HTTP.Headers, probe.Header{Name: one.Name, Value: one.Value})
		}
		out.HTTP.Port, err = port(h.HttpGet.Port)
	case *v1alpha3.ReadinessProbe_TcpSocket:
		out.TCP = &probe.TCP{Host: h.TcpSocket.Host}
		out.TCP.Port, err = port(h.TcpSocket.Port)
	case *v1alpha3.ReadinessProbe_Exec:
		out.Exec = &probe.Exec{Command: h.Exec.Command}
	case *v1alpha3.ReadinessProbe_Grpc:
		out.GRPC = &probe.GRPC{Service: h.Grpc.Service}
		out.GRPC.Port, err = port(h.Grpc.Port)
	}
	if err != nil {
		return nil, err
	}
	return out, out.Check()
}

// countThings registers the agent's own metrics. A metric that Istio's agent has too has the same name.
func (a *agent) countThings() {
	counts := &a.proxy.Counts
	type counter struct {
		name, help string
		value      func() int64
	}
	all := []counter{
		{"istio_agent_xds_proxy_requests", "Requests to the control plane.", counts.Requests.Load},
		{"istio_agent_xds_proxy_responses", "Answers of the control plane.", counts.Responses.Load},
		{"istio_agent_istiod_connection_failures", "Connections to the control plane that failed.",
			counts.UpstreamFailures.Load},
		{"istio_agent_istiod_connection_terminations", "Streams that the control plane has ended.", counts.UpstreamEnds.Load},
		{"istio_agent_envoy_connection_terminations", "Streams that Envoy has ended.", counts.Ends.Load},
	}
	if a.names != nil {
		names := &a.names.Counts
		all = append(all, counter{"istio_agent_dns_requests_total", "Queries for names.", names.Queries.Load},
			counter{"istio_agent_dns_upstream_requests_total", "Queries that were passed on.", names.Passed.Load},
			counter{"istio_agent_dns_upstream_failures_total", "Queries that nobody has answered.", names.Failed.Load})
	}
	for _, c := range all {
		a.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help},
			func() float64 { return float64(c.value()) }))
	}
	a.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "istio_agent_cert_expiry_seconds",
		Help:        "Time until the workload's certificate ends; negative when it has ended, 0 while there is none.",
		ConstLabels: prometheus.Labels{"resource_name": "default"}}, func() float64 {
		m, _ := a.secrets.Workload.Get()
		if m == nil {
			return 0
		}
		return time.Until(m.NotAfter).Seconds()
	}))
}
