package discovery

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/secrets"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/grpcstream"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// short returns the name of a type in metrics, the same as istiod's: cds.
func short(t xdstype.Type) string { return strings.ToLower(t.String()) }

// served makes the metric of each type in advance, so that counting needs no map lookup.
func served[M any](f func(label string) M) (out []M) {
	for t := range xdstype.Type(xdstype.NumStandard) {
		out = append(out, f(short(t)))
	}
	return out
}

func (s *Server) shardMetrics() shard.Metrics {
	m := s.Metrics
	pushes := served(func(l string) prometheus.Counter { return m.Pushes.WithLabelValues(l) })
	times := served(func(l string) prometheus.Observer { return m.PushTime.WithLabelValues(l) })
	sizes := served(func(l string) prometheus.Observer { return m.ConfigSize.WithLabelValues(l) })
	expired := served(func(l string) prometheus.Counter { return m.ExpiredNonce.WithLabelValues(l) })
	rejects := served(func(l string) prometheus.Counter { return m.Rejects.WithLabelValues(l) })
	unanswered := served(func(l string) prometheus.Counter { return m.Unanswered.WithLabelValues(l) })
	var waits [admission.Priorities]prometheus.Observer
	for n := range waits {
		waits[n] = m.Admission.WithLabelValues(admission.Priority(n).String())
	}
	refusals := newRefusalLog(s.log.With("scope", "ads"))
	return shard.Metrics{
		Sent: func(t xdstype.Type, bytes int, since time.Duration) {
			pushes[t].Inc()
			sizes[t].Observe(float64(bytes))
			if since >= 0 {
				times[t].Observe(since.Seconds())
			}
		},
		Converged:  func(since time.Duration) { m.Convergence.Observe(since.Seconds()) },
		Queued:     func(_ shard.Lane, waited time.Duration) { m.QueueTime.Observe(waited.Seconds()) },
		Admitted:   func(p admission.Priority, waited time.Duration) { waits[p].Observe(waited.Seconds()) },
		Unanswered: func(t xdstype.Type) { unanswered[t].Inc() },
		Expired:    func(t xdstype.Type) { expired[t].Inc() },
		Unserved:   func(url string) { m.Unserved.WithLabelValues(known(url)).Inc() },
		Withheld:   func(r shard.Withheld) { m.Withheld.WithLabelValues(r.String()).Inc() },
		Refused: func(r shard.Refusal) {
			rejects[r.Type].Inc()
			if len(r.Offences) == 0 { // the reason is not known yet
				refusals.tell(&r)
			}
			s.refused(&r)
		},
		Healed:   s.healed,
		Panicked: s.contained,
	}
}

// known bounds the values of a label: a client can ask for any type, served or not.
func known(url string) string {
	switch name := url[strings.LastIndexByte(url, '.')+1:]; name {
	case "Secret", "TypedExtensionConfig", "ProxyConfig", "HealthInformation", "Address", "Workload",
		"Authorization", "ScopedRouteConfiguration", "VirtualHost", "Runtime", "Bootstrap":
		return name
	}
	return "other"
}

func (s *Server) storeMetrics() ingest.Metrics {
	m, kinds := s.Metrics, ingest.NewKindTable()
	return ingest.Metrics{
		Event: func(name value.Kind) {
			if k := kinds[name]; k != nil && k.Registry {
				m.RegEvents.WithLabelValues(name.String(), "update").Inc()
			} else {
				m.CfgEvents.WithLabelValues(name.String(), "update").Inc()
			}
		},
		Refused:  func(k value.Kind) { m.Refused.WithLabelValues(k.String()).Inc() },
		Standing: func(n int) { m.Standing.Set(float64(n)) },
	}
}

// countProblem counts a new problem of an object.
func (s *Server) countProblem(kind value.Kind, cause report.Cause) {
	s.Metrics.Problems.WithLabelValues(kind.String(), string(cause)).Inc()
}

func (s *Server) took(step plan.Step) {
	if step.Bases == 0 {
		return
	}
	s.Metrics.Debounce.Observe(step.Waited.Seconds())
	s.Metrics.PlanTime.Observe(step.Took.Seconds())
	s.Metrics.Bases.Observe(float64(step.Bases))
}

func (s *Server) countTriggers(d *snapshot.Delta) {
	t := s.Metrics.Triggers
	if d.All {
		t.WithLabelValues("global").Inc()
	}
	for k := range d.Objects {
		t.WithLabelValues(strings.ToLower(k.Kind.String())).Inc()
	}
	if len(d.Services) > 0 {
		t.WithLabelValues("service").Add(float64(len(d.Services)))
	}
	if len(d.Endpoints) > 0 {
		t.WithLabelValues("endpoint").Add(float64(len(d.Endpoints)))
		s.Metrics.Inbound.WithLabelValues("eds").Inc()
	}
	if len(d.Objects)+len(d.Services) > 0 || d.All {
		s.Metrics.Inbound.WithLabelValues("config").Inc()
	}
}

// gauges registers metrics whose value is read at each scrape.
func (s *Server) gauges() {
	start := time.Now()
	m := s.Metrics
	m.Uptime(func() time.Duration { return time.Since(start) })
	counts := func(k value.Kind) func() float64 {
		return func() float64 { return float64(s.Builder.View().Snapshot.Counts()[k]) }
	}
	for _, k := range ingest.Kinds() {
		if k.Gauge != "" {
			m.Gauge(k.Gauge, k.Name.Name()+"s known.", counts(k.Name))
		}
	}
	m.Gauge("pilot_xds", "Streams attached.", func() float64 { return float64(s.Shards.Streams()) })
	m.Gauge("pilotd_xds_streams_open", "Streams open, attached or not.",
		func() float64 { return float64(s.Streams.Streams()) })
	m.Gauge("pilotd_xds_admission_planning", "Proxies that have connected and wait to be planned for.",
		func() float64 { return float64(s.Shards.Planning()) })
	m.Gauge("pilotd_xds_admission_bytes", "Bytes of answers that proxies that connect have not shown to have read.",
		func() float64 { n, _ := s.Shards.Underway(); return float64(n) })
	m.Gauge("pilotd_xds_admission_limit_bytes",
		"Bytes of pilotd_xds_admission_bytes from which on proxies that connect wait.",
		func() float64 { _, n := s.Shards.Underway(); return float64(n) })
	m.Gauge("pilotd_xds_named_bytes", "Bytes of all that clients name: subscriptions and versions.",
		func() float64 { return float64(s.Names.Bytes()) })
	m.Gauge("pilotd_xds_unwritten_bytes", "Bytes of all responses that are not written yet.",
		func() float64 { return float64(s.Streams.Unwritten()) })
	for r := range grpcstream.Reason(grpcstream.NumReasons) {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pilotd_xds_streams_refused", Help: "Streams ended over a limit, by which.",
			ConstLabels: prometheus.Labels{"reason": r.String()},
		}, func() float64 { return float64(s.Streams.Stats().Refused[r]) }))
	}
	m.Counter("pilotd_xds_streams_shed",
		"Streams of clients that did not read, cut off because too much waited for all.",
		func() float64 { return float64(s.Streams.Stats().Shed) })
	m.Counter("pilotd_xds_streams_stuck", "Streams cut off because their client did not read.",
		func() float64 { return float64(s.Streams.Stats().Stuck) })
	m.Registry.MustRegister(&problemCollector{
		desc: prometheus.NewDesc("pilotd_object_problems",
			"Problems of objects that stand now, by kind and cause: see /debug/rejectionsz.", []string{"kind", "cause"},
			nil),
		counts: s.Reports.Counts,
	})
	m.Gauge("pilotd_sds_objects", "Secrets and ConfigMaps that are held for gateways.",
		func() float64 { return float64(s.Secrets.Stats().Objects) })
	m.Counter("pilot_sds_certificate_errors_total",
		"How often something that a proxy asks for was not to be had: see /debug/rejectionsz.", func() (n float64) {
			for _, refused := range s.Secrets.Stats().Refused {
				n += float64(refused)
			}
			return n
		})
	for r := range secrets.Refusal(secrets.NumRefusals) {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "pilotd_sds_refused_total",
			Help:        "Names of secrets that proxies ask for and get nothing of, by reason.",
			ConstLabels: prometheus.Labels{"reason": r.String()},
		}, func() float64 { return float64(s.Secrets.Stats().Refused[r]) }))
	}
	s.memoryGauges()
	for name, read := range map[string]func(shard.Stats) float64{
		"pilotd_shard_members":               func(f shard.Stats) float64 { return float64(f.Members) },
		"pilotd_shard_classes":               func(f shard.Stats) float64 { return float64(f.Classes) },
		"pilotd_shard_cohorts":               func(f shard.Stats) float64 { return float64(f.Cohorts) },
		"pilotd_shard_connecting":            func(f shard.Stats) float64 { return float64(f.Connecting) },
		"pilotd_shard_inbox":                 func(f shard.Stats) float64 { return float64(f.Inbox) },
		"pilotd_shard_resource_sets_waiting": func(f shard.Stats) float64 { return float64(f.ResourceSets) },
		"pilotd_shard_services_waiting":      func(f shard.Stats) float64 { return float64(f.Services) },
		"pilotd_shard_responses_sent":        func(f shard.Stats) float64 { return float64(f.Sent) },
		"pilotd_shard_responses_made":        func(f shard.Stats) float64 { return float64(f.Assembled) },
		"pilotd_shard_rounds":                func(f shard.Stats) float64 { return float64(f.Rounds) },
		"pilotd_shard_config_changes":        func(f shard.Stats) float64 { return float64(f.ConfigTakes) },
		"pilotd_shard_endpoint_changes":      func(f shard.Stats) float64 { return float64(f.EndpointTakes) },
	} {
		m.Registry.MustRegister(&shardCollector{desc: prometheus.NewDesc(name, "Of each shard: see shard.Stats.",
			[]string{"shard"}, nil), stats: s.Shards.Stats, read: read})
	}
}

// memoryGauges registers the metrics of memory and of what depends on it: see shard.MemoryStats.
func (s *Server) memoryGauges() {
	m := s.Metrics
	of := func(read func(shard.MemoryStats) float64) func() float64 {
		return func() float64 { return read(s.Shards.MemoryStats()) }
	}
	m.Gauge("pilotd_memory_limit_bytes", "What the collector keeps this process below; 0 is no limit.",
		of(func(f shard.MemoryStats) float64 { return float64(f.Limit) }))
	m.Gauge("pilotd_memory_live_bytes", "What the last collection found in use, with stacks and the runtime's tables.",
		of(func(f shard.MemoryStats) float64 { return float64(f.Live) }))
	m.Gauge("pilotd_memory_short", "1 while proxies that connect are answered one at a time because memory is short.",
		of(func(f shard.MemoryStats) float64 {
			if f.Short {
				return 1
			}
			return 0
		}))
	m.Counter("pilotd_memory_shortages", "How often proxies that connect began to be answered one at a time.",
		of(func(f shard.MemoryStats) float64 { return float64(f.Shortages) }))
	m.Gauge("pilotd_kept_bytes", "Encoded runs of resources that are kept for proxies that connect next.",
		of(func(f shard.MemoryStats) float64 { return float64(f.Kept) }))
	m.Gauge("pilotd_kept_limit_bytes", "How many bytes of pilotd_kept_bytes there may be now.",
		of(func(f shard.MemoryStats) float64 { return float64(f.KeptLimit) }))
	m.Counter("pilotd_kept_gone", "Encoded runs that were let go of for lack of room.",
		of(func(f shard.MemoryStats) float64 { return float64(f.Gone) }))
	m.Counter("pilotd_memory_gave_way", "How often something that only saves time was let go of for lack of memory.",
		of(func(f shard.MemoryStats) float64 { return float64(f.GaveWay) }))
}
