package secure

import (
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilotd/pilotd/shard/handshake"
	"github.com/pilotd/pilotd/status"
)

const (
	// handshakes bounds the TLS handshakes that are in progress.
	handshakes = 256
	// leastWaiting and mostWaiting bound the accepted connections that wait for their handshake. In between their
	// number is waitingShare of all connections that are allowed.
	leastWaiting, mostWaiting = 256, 1 << 14
	waitingShare              = 4
)

// Listen returns the listener of the TLS port, which admits handshakes by their cost.
func (s *Server) Listen(l net.Listener) *handshake.Door {
	d := handshake.Listen(l, handshake.Options{
		Waiting:  min(max(s.options.Connections/waitingShare, leastWaiting), mostWaiting),
		Underway: handshakes, Computing: s.options.Computing,
		AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
	})
	s.door.Store(d)
	return d
}

// doorMetrics registers the metrics of that listener.
func (s *Server) doorMetrics(m *status.Metrics) {
	stats := func() (out handshake.Stats) {
		if d := s.door.Load(); d != nil {
			out = d.Stats()
		}
		return out
	}
	m.Gauge("pilotd_tls_waiting", "Connections that are accepted and wait for their TLS handshake.",
		func() float64 { return float64(stats().Waiting) })
	m.Gauge("pilotd_tls_handshakes", "TLS handshakes that are under way.",
		func() float64 { return float64(stats().Underway) })
	for outcome, count := range map[string]func(handshake.Stats) uint64{
		"done":    func(s handshake.Stats) uint64 { return s.Done },
		"failed":  func(s handshake.Stats) uint64 { return s.Failed },
		"slow":    func(s handshake.Stats) uint64 { return s.Slow },
		"gone":    func(s handshake.Stats) uint64 { return s.Gone },
		"dropped": func(s handshake.Stats) uint64 { return s.Dropped },
	} {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pilotd_tls_connections_total", Help: "Connections with TLS, by how their handshakes ended.",
			ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(count(stats())) }))
	}
}
