package plan

import (
	"maps"
)

// Held is how much a Planner holds.
type Held struct {
	// Clients are the proxies that are attached and answered, Classes and Bases what they share.
	Clients, Classes, Bases int
}

// Held is how much the Planner held after its last step. Anyone may call it.
func (p *Planner) Held() Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// counts runs on the config goroutine.
func (s *state) counts() Held {
	return Held{Clients: len(s.clients), Classes: s.classes, Bases: len(s.bases)}
}

// Sizes are the numbers of Keys that each table holds, and of chunks that each pool of sections knows, by the noun:
func (t *Tables) Sizes() map[string]int {
	out := map[string]int{
		"trims":                t.trims.Len(),
		"gateways.listeners":   t.gateways.listeners.Len(),
		"gateways.chains":      t.gateways.chains.Len(),
		"gateways.routes":      t.gateways.routes.Len(),
		"gateways.blackhole":   t.gateways.blackhole.Len(),
		"gateways.routers":     t.gateways.routers.Len(),
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
	for _, s := range t.sources {
		maps.Copy(out, s.Sizes())
	}
	return out
}
