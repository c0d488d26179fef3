package plan

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
// "clusters.outbound". What nobody holds leaves after a garbage collection.
func (t *Tables) Sizes() map[string]int {
	assignments, selections := t.endpoints.Sizes()
	out := map[string]int{
		"trims":                 t.trims.Len(),
		"clusters.outbound":     t.clusters.outbound.Len(),
		"clusters.static":       t.clusters.static.Len(),
		"endpoints.assignments": assignments,
		"endpoints.encoded":     selections,
		"clusters.crowds":       t.clusters.crowds.Len(),
		"listeners.outbound":    t.listeners.outbound.Len(),
		"listeners.virtual":     t.listeners.virtual.Len(),
		"listeners.api":         t.listeners.api.Len(),
		"listeners.chains":      t.listeners.chains.Len(),
		"routes.hosts":          t.routes.hosts.Len(),
		"routes.headers":        t.routes.headers.Len(),
		"routes.catchAlls":      t.routes.catchAlls.Len(),
		"routes.destinations":   t.routes.destinations.Len(),
		"routes.sniffed":        t.routes.sniffed.Len(),
		"routes.runs":           t.routes.runs.Len(),
		"gateways.listeners":    t.gateways.listeners.Len(),
		"gateways.chains":       t.gateways.chains.Len(),
		"gateways.routes":       t.gateways.routes.Len(),
		"gateways.blackhole":    t.gateways.blackhole.Len(),
		"gateways.routers":      t.gateways.routers.Len(),
		"sections.clusters":     t.sections.clusters.Len(),
		"sections.listeners":    t.sections.listeners.Len(),
		"sections.routes":       t.sections.routes.Len(),
		"sections.assignments":  t.sections.assignments.Len(),
		"sections.hosts":        t.sections.hosts.Len(),
	}
	for table, n := range t.inbound.Sizes() {
		out["inbound."+table] = n
	}
	return out
}
