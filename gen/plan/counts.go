package plan

import (
	"maps"
)

// Counts is how much a Planner has.
type Counts struct {
	// Clients are the proxies that are attached and answered, Classes and Bases what they share.
	Clients, Classes, Bases int
}

// counts counts what there is now. It runs on the config goroutine.
func (s *state) counts() Counts {
	return Counts{Clients: len(s.clients), Classes: s.classes, Bases: len(s.bases)}
}

// Sizes returns how many Keys each table has, and how many chunks each pool of sections, by the name of the table or
// pool.
func (t *Tables) Sizes() map[string]int {
	out := map[string]int{
		"trims":                t.trims.Len(),
		"sections.clusters":    t.sections.clusters.Len(),
		"sections.listeners":   t.sections.listeners.Len(),
		"sections.routes":      t.sections.routes.Len(),
		"sections.assignments": t.sections.assignments.Len(),
		"sections.hosts":       t.sections.hosts.Len(),
	}
	maps.Copy(out, t.Tables.Sizes())
	for table, n := range t.inbound.Sizes() {
		out["inbound."+table] = n
	}
	for table, n := range t.gateways.Sizes() {
		out["gateways."+table] = n
	}
	for _, s := range t.sources.all {
		maps.Copy(out, s.Sizes())
	}
	return out
}
