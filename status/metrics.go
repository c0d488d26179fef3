package status

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are what pilotd counts while it works. All are safe for concurrent use.
type Metrics struct {
	Registry *prometheus.Registry

	Pushes         *prometheus.CounterVec   // pilot_xds_pushes{type}
	PushTime       *prometheus.HistogramVec // pilot_xds_push_time{type}
	ConfigSize     *prometheus.HistogramVec // pilot_xds_config_size_bytes{type}
	SendTime       prometheus.Histogram     // pilot_xds_send_time
	Rejects        *prometheus.CounterVec   // pilot_total_xds_rejects{type}
	InternalErrors prometheus.Counter       // pilot_total_xds_internal_errors
	ExpiredNonce   *prometheus.CounterVec   // pilot_xds_expired_nonce{type}
	Unserved       *prometheus.CounterVec   // pilotd_xds_unserved_types{type}
	Withheld       *prometheus.CounterVec   // pilotd_sds_withheld{reason}
	Triggers       *prometheus.CounterVec   // pilot_push_triggers{type}
	Inbound        *prometheus.CounterVec   // pilot_inbound_updates{type}
	RegEvents      *prometheus.CounterVec   // pilot_k8s_reg_events{type,event}
	CfgEvents      *prometheus.CounterVec   // pilot_k8s_cfg_events{type,event}
	Refused        *prometheus.CounterVec   // galley_validation_failed{type}
	Standing       prometheus.Gauge         // pilot_total_rejected_configs
	Convergence    prometheus.Histogram     // pilot_proxy_convergence_time
	QueueTime      prometheus.Histogram     // pilot_proxy_queue_time
	Unanswered     *prometheus.CounterVec   // pilotd_xds_streams_unanswered{type}
	Admission      *prometheus.HistogramVec // pilotd_xds_admission_seconds{need}
	Debounce       prometheus.Histogram     // pilot_debounce_time
	PlanTime       prometheus.Histogram     // pilot_pushcontext_init_seconds
	Bases          prometheus.Histogram     // pilotd_plan_bases_advanced
	Problems       *prometheus.CounterVec   // pilotd_object_problems_total{kind,cause}
	PagePanics     *prometheus.CounterVec   // pilotd_page_panics{page}
}

// wide returns histogram buckets, in seconds, that reach as far as the rollout of a large mesh takes.
func wide() []float64 {
	return []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300}
}

// NewMetrics makes the metrics in a registry of their own, with those of the Go runtime and the process. build is the
// version label.
func NewMetrics(build string) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{r}
	m := &Metrics{
		Registry: r,
		Pushes:   f.counters("pilot_xds_pushes", "Responses sent, by type.", "type"),
		PushTime: f.histograms("pilot_xds_push_time", "Seconds from a change to its response, by type.", wide(),
			"type"),
		ConfigSize: f.histograms("pilot_xds_config_size_bytes", "Bytes of a response, by type.",
			prometheus.ExponentialBuckets(1000, 4, 12), "type"),
		SendTime:       f.histogram("pilot_xds_send_time", "Seconds that a response took to be written to its stream."),
		Rejects:        f.counters("pilot_total_xds_rejects", "Responses that a client refused, by type.", "type"),
		InternalErrors: f.counter("pilot_total_xds_internal_errors", "Streams ended for a fault of the server."),
		ExpiredNonce: f.counters("pilot_xds_expired_nonce", "Requests with the nonce of an older response, by type.",
			"type"),
		Unserved: f.counters("pilotd_xds_unserved_types", "Requests for types that are not served, by type.",
			"type"),
		Withheld: f.counters("pilotd_sds_withheld",
			"Requests for secrets from clients that are sent none: they have not proven who they are, or no more.", "reason"),
		Triggers:  f.counters("pilot_push_triggers", "Changes that led to a push, by kind.", "type"),
		Inbound:   f.counters("pilot_inbound_updates", "Changes received from sources, by lane.", "type"),
		RegEvents: f.counters("pilot_k8s_reg_events", "Events of registry objects, by kind.", "type", "event"),
		CfgEvents: f.counters("pilot_k8s_cfg_events", "Events of configuration objects, by kind.", "type",
			"event"),
		Refused:  f.counters("galley_validation_failed", "Objects that were refused, by kind.", "type"),
		Standing: f.gauge("pilot_total_rejected_configs", "Objects of which the newest version is refused now."),
		Convergence: f.histogram("pilot_proxy_convergence_time",
			"Seconds from a change to the last response for it, per proxy."),
		QueueTime: f.histogram("pilot_proxy_queue_time", "Seconds that a change waited for its shard."),
		Unanswered: f.counters("pilotd_xds_streams_unanswered",
			"Streams cut off because their client did not answer a response while changes waited, by type.", "type"),
		Admission: f.histograms("pilotd_xds_admission_seconds",
			"Seconds from a proxy's connecting to its first answer, by its need.", wide(), "need"),
		Debounce: f.histogram("pilot_debounce_time",
			"Seconds that a configuration change waited before it was planned."),
		PlanTime: f.histogram("pilot_pushcontext_init_seconds",
			"Seconds that it took to plan a change for all classes."),
		Problems: f.counters("pilotd_object_problems_total",
			"Problems of objects that began to stand, by kind and cause: see /debug/rejectionsz.", "kind", "cause"),
		Bases: f.histogram("pilotd_plan_bases_advanced", "Plans that one change was worked into."),
		PagePanics: f.counters("pilotd_page_panics",
			"Requests for a status or debug page that ended in a panic, by page.", "page"),
	}
	info := f.gauges("istio_build", "Which build this is.", "component", "tag")
	info.WithLabelValues("pilot", build).Set(1)
	f.gauges("pilot_info", "Which build this is.", "version").WithLabelValues(build).Set(1)
	return m
}

// Gauge registers a figure that is read when it is scraped.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter registers a counter that is read at each scrape.
func (m *Metrics) Counter(name, help string, read func() float64) {
	m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// Uptime registers istiod_uptime_seconds.
func (m *Metrics) Uptime(since func() time.Duration) {
	m.Gauge("istiod_uptime_seconds", "Seconds since the start.", func() float64 { return since().Seconds() })
}

// factory makes and registers metrics.
type factory struct{ r *prometheus.Registry }

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	f.r.MustRegister(c)
	return c
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.r.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	f.r.MustRegister(g)
	return g
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.r.MustRegister(g)
	return g
}

func (f factory) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: wide()})
	f.r.MustRegister(h)
	return h
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.r.MustRegister(h)
	return h
}
