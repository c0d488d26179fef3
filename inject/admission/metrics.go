package admission

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are called as istiod's are, where it has them.
type metrics struct {
	requests, successes, failures, skips prometheus.Counter
	seconds                              prometheus.Histogram
	// Of pods that may be like others: those whose patch was kept, and the others. istiod keeps none.
	hits, misses prometheus.Counter
	kept         prometheus.GaugeFunc
}

func newMetrics(kept func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		requests:  counter("sidecar_injection_requests_total", "Requests to inject a pod."),
		successes: counter("sidecar_injection_success_total", "Pods that were injected."),
		failures:  counter("sidecar_injection_failure_total", "Requests that were refused."),
		skips:     counter("sidecar_injection_skip_total", "Pods that were let in as they are."),
		hits:      counter("pilotd_injection_kept_hits_total", "Pods whose patch was made before, of a pod like them."),
		misses:    counter("pilotd_injection_kept_misses_total", "Pods of which no patch was kept."),
		kept: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pilotd_injection_kept_bytes",
			Help: "Size of the patches that are kept."}, kept),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sidecar_injection_time_seconds",
			Help: "Time that a request took.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}}),
	}
}

// Collectors returns the Handler's metrics.
func (h *Handler) Collectors() []prometheus.Collector {
	m := h.metrics
	return []prometheus.Collector{m.requests, m.successes, m.failures, m.skips, m.seconds, m.hits, m.misses, m.kept}
}
