// Package status serves /ready, /metrics with the names that istiod's dashboards and alerts use, and the /debug pages.
//
// Its only state is the metrics. When a page is requested, it asks the part of pilotd that has the facts: the shards
// for what was sent, the builder for the View, the store for refused objects. Nothing here is on the push path.
package status
