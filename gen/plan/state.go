package plan

import (
	"maps"
	"slices"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// state is what the config goroutine owns: who is attached, of which class, and what each class has.
type state struct {
	current *snapshot.View
	clients map[uint64]*client
	// byAddress and byNamespace find the clients that a change of a workload or of a service may move to another class. Rarely two have
	// one address.
	byAddress   map[string][]*client
	byNamespace map[string]map[*client]struct{}
	bases       map[Facts]*baseState
	classes     int           // of all bases
	emptied     []*classState // those that lost their last member, though they may have another by now
	interest    interest
	known       *known // of the Snapshot that is planned; nil when nothing is
	serial      int
}

type client struct {
	id    uint64
	proxy *Proxy
	class *classState
}

// classState is a class in use. There are nearly as many as workloads.
type classState struct {
	class   Class
	id      string // what tells it from the other classes of its base
	base    *baseState
	own     *Own
	inbound *inbound
	world   *World
	members int
}

// baseState is a base in use.
type baseState struct {
	base    *base
	facts   Facts
	classes map[string]*classState // by id
}

func newState() state {
	return state{
		clients: map[uint64]*client{}, byAddress: map[string][]*client{}, byNamespace: map[string]map[*client]struct{}{},
		bases: map[Facts]*baseState{}, interest: newInterest(),
	}
}

// attach classifies a new client and answers it.
func (p *Planner) attach(a arrival) {
	c := &client{id: a.id, proxy: a.proxy}
	p.clients[a.id] = c
	for _, addr := range a.proxy.Addresses {
		p.byAddress[addr] = append(p.byAddress[addr], c)
	}
	ns := a.proxy.Namespace
	if p.byNamespace[ns] == nil {
		p.byNamespace[ns] = map[*client]struct{}{}
	}
	p.byNamespace[ns][c] = struct{}{}
	p.classify(c)
}

func (p *Planner) detach(id uint64) {
	c := p.clients[id]
	if c == nil {
		return
	}
	delete(p.clients, id)
	for _, addr := range c.proxy.Addresses {
		if left := slices.DeleteFunc(p.byAddress[addr], func(o *client) bool { return o == c }); len(left) > 0 {
			p.byAddress[addr] = left
		} else {
			delete(p.byAddress, addr)
		}
	}
	ns := c.proxy.Namespace
	delete(p.byNamespace[ns], c)
	if len(p.byNamespace[ns]) == 0 {
		delete(p.byNamespace, ns)
	}
	p.leave(c)
}

// leave takes a client out of its class.
func (p *Planner) leave(c *client) {
	if c.class == nil {
		return
	}
	if c.class.members--; c.class.members == 0 {
		p.emptied = append(p.emptied, c.class)
	}
}

// classify finds the class of a client under the current View, and tells the Sink if it is another than before.
func (p *Planner) classify(c *client) {
	facts, labels := factsOf(p.current, c.proxy)
	own, id := ownOf(p.current, c.proxy)
	bs := p.bases[facts]
	if bs == nil {
		bs = &baseState{base: p.tables.baseOf(p.knownOf(p.current.Snapshot), facts, labels), facts: facts, classes: map[string]*classState{}}
		p.bases[facts] = bs
		p.interest.add(bs)
	}
	cs := bs.classes[id]
	if cs == nil {
		p.serial++
		cs = &classState{base: bs, own: own, inbound: p.tables.inboundOf(bs.base, own, nil)}
		cs.class, cs.id = newClass(&facts, id, p.serial)
		cs.world = bs.base.world(cs.inbound, nil, nil)
		bs.classes[cs.id] = cs
		p.classes++
	}
	if cs == c.class {
		return
	}
	p.leave(c)
	cs.members++
	c.class = cs
	p.sink.Assigned(c.id, &cs.class, cs.world)
}

// sweep drops classes without members and bases without classes.
func (p *Planner) sweep() {
	for _, cs := range p.emptied {
		bs := cs.base
		if cs.members > 0 || bs.classes[cs.id] != cs {
			continue
		}
		delete(bs.classes, cs.id)
		p.classes--
		if len(bs.classes) == 0 {
			delete(p.bases, bs.facts)
			p.interest.remove(bs)
		}
	}
	p.emptied = nil
}

// advance brings every base and class that d touches to v, tells the Sink, also of the endpoints that waited for that, and moves the clients
// whose facts changed.
func (p *Planner) advance(v *snapshot.View, d *snapshot.Delta, late Endpoints) (bases, classes int) {
	prev := p.current
	p.current = v
	if prev == nil {
		p.sink.Advanced(nil, late)
		return 0, 0
	}
	worlds := map[*Class]*World{}
	if d.All || len(d.Objects)+len(d.Services) > 0 {
		touch := p.tables.touchedBy(prev.Snapshot, v.Snapshot, d)
		p.known = touch.known
		for bs := range p.interest.in(touch, prev.Snapshot, v.Snapshot) {
			bases++
			p.advanceBase(bs, v, touch, worlds)
		}
	}
	moved := p.affected(prev, v, d)
	for c := range moved {
		p.refreshOwn(c, worlds)
	}
	if len(worlds)+len(late.Services) > 0 {
		p.sink.Advanced(worlds, late)
	}
	for c := range moved {
		p.classify(c)
	}
	return bases, len(worlds)
}

// advanceBase brings a base and the classes that stand on it to v. A base that a step skipped stands at an older Snapshot, but at an equal
// one for its scope.
func (p *Planner) advanceBase(bs *baseState, v *snapshot.View, touch *touched, worlds map[*Class]*World) {
	old := bs.base
	if touch.all {
		bs.base = p.tables.baseOf(p.knownOf(v.Snapshot), bs.facts, old.scope.Labels)
	} else {
		bs.base = p.tables.advance(old, v.Snapshot, touch)
	}
	same := old.equal(bs.base)
	for _, cs := range bs.classes {
		stale := touch.all || slices.ContainsFunc(cs.own.Targets, func(t Target) bool {
			_, ok := touch.hosts[t.Service.Host]
			return ok
		})
		if stale {
			p.renew(cs, worlds)
		} else if !same {
			cs.give(bs.base.world(cs.inbound, old, cs.world), worlds)
		}
	}
}

// renew computes the own part of a class anew.
func (p *Planner) renew(cs *classState, worlds map[*Class]*World) {
	cs.inbound = p.tables.inboundOf(cs.base.base, cs.own, cs.inbound)
	cs.give(cs.base.base.world(cs.inbound, nil, nil), worlds)
}

// give makes w the World of the class, and notes it if it differs.
func (cs *classState) give(w *World, worlds map[*Class]*World) {
	if !w.equal(cs.world) {
		worlds[&cs.class] = w
	}
	cs.world = w
}

// refreshOwn renews the World of a client's class if the values behind its own ports are others now, while they are the same ports.
func (p *Planner) refreshOwn(c *client, worlds map[*Class]*World) {
	own, id := ownOf(p.current, c.proxy)
	if id != c.class.id || slices.Equal(own.Targets, c.class.own.Targets) {
		return // it moves to another class, or another member of the class has renewed it
	}
	c.class.own = own
	p.renew(c.class, worlds)
}

// affected are the clients whose class may be another one, or whose own part may differ.
func (p *Planner) affected(prev, v *snapshot.View, d *snapshot.Delta) map[*client]struct{} {
	out := map[*client]struct{}{}
	if d.All || !prev.Snapshot.ReadsSame(v.Snapshot) {
		for _, c := range p.clients {
			out[c] = struct{}{}
		}
		return out
	}
	for a := range d.Workloads {
		for _, c := range p.byAddress[a] {
			out[c] = struct{}{}
		}
	}
	for k := range d.Services {
		for c := range p.byNamespace[k.Namespace] {
			if _, ok := out[c]; !ok && (c.proxy.Traits.Type == value.Router || serves(prev, c, k) || serves(v, c, k)) {
				out[c] = struct{}{}
			}
		}
	}
	for k := range d.Objects {
		if k.Kind != value.KindSidecar {
			continue
		}
		for ns := range maps.Keys(p.byNamespace) {
			if ns == k.Namespace || k.Namespace == v.Snapshot.Mesh.RootNamespace() {
				for c := range p.byNamespace[ns] {
					out[c] = struct{}{}
				}
			}
		}
	}
	return out
}

// serves reports whether the client's workload serves any port of a service.
func serves(v *snapshot.View, c *client, k value.ServiceKey) bool {
	svc := v.Snapshot.Service(k)
	if svc == nil {
		return false
	}
	w := workloadOf(v, c.proxy)
	for _, port := range svc.Ports {
		if _, ok := servedAt(v, w, c.proxy, svc, port); ok {
			return true
		}
	}
	return false
}
