package outbound

import (
	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/endpoints"
)

// Tables hold what was generated for calls that proxies make, by its Keys, for all classes and shards of a
// process. Safe for concurrent use.
type Tables struct {
	Clusters  clusterTables
	listeners listenerTables
	Routes    routeTables
	endpoints endpoints.Tables
	faults    *checked.Faults
	// regexSize is the largest RE2 program of a regular expression that upstream Envoys take. LimitRegex sets it before
	// use.
	RegexSize int
}

// NewTables makes empty Tables. What cannot be sent is noted in f.
func NewTables(f *checked.Faults) Tables {
	return Tables{
		Clusters:  newClusterTables(f),
		listeners: newListenerTables(f),
		Routes:    newRouteTables(f),
		endpoints: endpoints.NewTables(),
		faults:    f,
		RegexSize: envoytext.UpstreamRegexSize,
	}
}

// LimitRegex sets the largest RE2 program of a regular expression that upstream Envoys take, in place of
// envoytext.UpstreamRegexSize. It must be called before the Tables are used.
func (t *Tables) LimitRegex(size int) { t.RegexSize = size }

// Sizes returns how many Keys each table holds, by the noun: "clusters.outbound".
func (t *Tables) Sizes() map[string]int {
	assignments, selections := t.endpoints.Sizes()
	return map[string]int{
		// "clusters.outbound". What nobody holds leaves after a garbage collection.
		"clusters.outbound":     t.Clusters.Outbound.Len(),
		"clusters.static":       t.Clusters.static.Len(),
		"endpoints.assignments": assignments,
		"endpoints.encoded":     selections,
		"clusters.crowds":       t.Clusters.crowds.Len(),
		"listeners.outbound":    t.listeners.outbound.Len(),
		"listeners.virtual":     t.listeners.virtual.Len(),
		"listeners.api":         t.listeners.API.Len(),
		"listeners.chains":      t.listeners.chains.Len(),
		"routes.hosts":          t.Routes.Hosts.Len(),
		"routes.headers":        t.Routes.Headers.Len(),
		"routes.catchAlls":      t.Routes.catchAlls.Len(),
		"routes.destinations":   t.Routes.Destinations.Len(),
		"routes.sniffed":        t.Routes.sniffed.Len(),
		"routes.runs":           t.Routes.runs.Len(),
	}
}
