// Package status shows what goes on inside: /ready, /metrics with the names that istiod's dashboards and alerts know,
// and the /debug pages.
//
// It owns no state of its own but the metrics. Every page asks the part that knows (the shards for what was sent, the
// builder for the View, the store for refusals) when it is requested. Nothing here is on the push path.
package status
