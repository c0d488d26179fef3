package discovery

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/shard"
)

// shardCollector reports one metric for each shard. Immutable.
type shardCollector struct {
	desc  *prometheus.Desc
	stats func() []shard.Stats
	read  func(shard.Stats) float64
}

// Describe implements prometheus.Collector.
func (c *shardCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *shardCollector) Collect(ch chan<- prometheus.Metric) {
	for i, f := range c.stats() {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, c.read(f), strconv.Itoa(i))
	}
}

// problemCollector reports the number of present problems of objects. Immutable.
type problemCollector struct {
	desc   *prometheus.Desc
	counts func() map[report.Count]int
}

// Describe implements prometheus.Collector.
func (c *problemCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *problemCollector) Collect(ch chan<- prometheus.Metric) {
	for of, n := range c.counts() {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), of.Kind.String(),
			string(of.Cause))
	}
}
