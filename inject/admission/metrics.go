package admission

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are called as istiod's are.
type metrics struct {
	requests, successes, failures, skips prometheus.Counter
	seconds                              prometheus.Histogram
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		requests:  counter("sidecar_injection_requests_total", "Requests to inject a pod."),
		successes: counter("sidecar_injection_success_total", "Pods that were injected."),
		failures:  counter("sidecar_injection_failure_total", "Requests that were refused."),
		skips:     counter("sidecar_injection_skip_total", "Pods that were let in as they are."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sidecar_injection_time_seconds",
			Help: "Time that a request took.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}}),
	}
}

// Collectors returns the Handler's metrics.
func (h *Handler) Collectors() []prometheus.Collector {
	m := h.metrics
	return []prometheus.Collector{m.requests, m.successes, m.failures, m.skips, m.seconds}
}
