package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// state is what the config goroutine owns: who is attached, of which class, and what each class has.
type state struct {
	current *snapshot.View
	clients map[uint64]*client
	// byAddress and byNamespace find the clients that a change of a workload or of a service may move to another class.
	// Rarely two have one address.
	byAddress   map[string][]*client
	byNamespace map[string]map[*client]struct{}
	bases       map[scope.Facts]*baseState
	families    map[scope.Facts]*family // by familyFacts
	apart       bool                    // every scope is made by itself; for tests, which set it before use
	classes     int                     // of all bases
	emptied     []*classState           // those that lost their last member, though they may have another by now
	interest    interest
	memo        *scope.Memo // of the Snapshot that is planned; nil when nothing is
	// askers is how many clients ask for each type that is made on demand.
	askers map[xdstype.Type]int
	serial int
	// stuck are the clients whose class could not be worked out, because that panicked: they keep what they have until
	// a change, after which it is tried again. failed are the Facts of which the base panicked since the last change.
	stuck  map[*client]struct{}
	failed map[scope.Facts]struct{}
}

type client struct {
	id    uint64
	proxy *proxy.Proxy
	class *classState
	wants xdstype.Set // the types made on demand that it has asked for
}

// classState is a class in use. There are nearly as many as workloads.
type classState struct {
	class   classes.Class
	id      string // what tells it from the other classes of its base
	base    *baseState
	own     *inbound.Facts
	overlay *inbound.Overlay
	set     *classes.ResourceSet
	members int
	broken  bool // its last computation panicked: set is an older one
}

// baseState is a base in use.
type baseState struct {
	base    *base
	family  *family // nil if it is of none
	beside  *base   // what the family's outsider had when base was made
	facts   scope.Facts
	classes []*classState // sorted by id
	broken  bool          // its last computation panicked: base is an older one
	found   uint64        // the last search of interest that found it
}

// class returns where the class of an id is, or would be, among those of the base.
func (bs *baseState) class(id string) (at int, ok bool) {
	return slices.BinarySearchFunc(bs.classes, id,
		func(cs *classState, id string) int { return strings.Compare(cs.id, id) })
}

func newState() state {
	return state{
		clients: map[uint64]*client{}, byAddress: map[string][]*client{},
		byNamespace: map[string]map[*client]struct{}{},
		bases:       map[scope.Facts]*baseState{}, families: map[scope.Facts]*family{}, interest: newInterest(),
		stuck: map[*client]struct{}{}, failed: map[scope.Facts]struct{}{}, askers: map[xdstype.Type]int{},
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
	p.settleClass(c)
}

func (p *Planner) detach(id uint64) {
	c := p.clients[id]
	if c == nil {
		return
	}
	delete(p.clients, id)
	delete(p.stuck, c)
	p.unwant(c)
	p.tables.faults.Forget(c)
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

// attend counts those of wants whose clients have not left meanwhile, and sees to it that what is made on demand is
// made while somebody asks for it.
func (p *Planner) attend(wants []want) {
	for _, w := range wants {
		if c := p.clients[w.id]; c != nil && !c.wants.Has(w.typ) {
			c.wants = c.wants.With(w.typ)
			p.askers[w.typ]++
		}
	}
	if sets := p.supply(); len(sets) > 0 {
		p.sink.Advanced(sets, classes.Endpoints{})
	}
}

// unwant is that a client wants nothing any more.
func (s *state) unwant(c *client) {
	for t := range s.askers {
		if c.wants.Has(t) {
			s.askers[t]--
		}
	}
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

// settleClass classifies a client. One for which that panics keeps what it has, which is nothing if it is new: an empty
// answer would take away what it has from before.
func (p *Planner) settleClass(c *client) {
	if p.tables.faults.Contain(c, "proxy "+c.proxy.ID, nil, func() { p.classify(c) }) {
		delete(p.stuck, c)
	} else {
		p.stuck[c] = struct{}{}
	}
}

// classify finds the class of a client under the current View, and tells the Sink if it is another than before.
func (p *Planner) classify(c *client) {
	facts, labels := factsOf(p.current, c.proxy)
	own, id := ownOf(p.current, c.proxy)
	bs := p.bases[facts]
	if bs == nil {
		if _, bad := p.failed[facts]; bad {
			panic("the configuration of its kind of proxy cannot be made")
		}
		p.failed[facts] = struct{}{}
		bs = &baseState{family: p.familyOf(facts, labels), facts: facts}
		bs.base = p.newBase(bs.family, facts, labels)
		delete(p.failed, facts)
		p.bases[facts] = bs
		if p.join(bs); bs.family == nil {
			p.interest.add(bs)
		}
	}
	at, ok := bs.class(id)
	var cs *classState
	if ok {
		cs = bs.classes[at]
	} else {
		p.serial++
		cs = &classState{base: bs, own: own, overlay: p.tables.overlayOf(bs.base, own, nil)}
		cs.class, cs.id = newClass(&facts, id, p.serial)
		cs.set = bs.base.set(cs.overlay, nil, nil)
		bs.classes = slices.Insert(bs.classes, at, cs)
		p.classes++
	}
	if cs == c.class {
		return
	}
	p.leave(c)
	cs.members++
	c.class = cs
	p.sink.Assigned(c.id, &cs.class, cs.set)
}

// sweep drops classes without members and bases without classes.
func (p *Planner) sweep() {
	for _, cs := range p.emptied {
		bs := cs.base
		at, ok := bs.class(cs.id)
		if cs.members > 0 || !ok || bs.classes[at] != cs {
			continue
		}
		bs.classes = slices.Delete(bs.classes, at, at+1)
		p.tables.faults.Forget(cs)
		p.classes--
		if len(bs.classes) == 0 {
			delete(p.bases, bs.facts)
			p.tables.faults.Forget(bs)
			p.interest.remove(bs)
			p.quit(bs)
			p.forgetLack(&bs.facts)
		}
	}
	p.emptied = nil
}

// forgetLack takes that back once a base is gone that was the last one of such proxies.
func (p *Planner) forgetLack(gone *scope.Facts) {
	n := p.current.Snapshot
	if !outbound.LacksDynamicDNS(n, gone) {
		return
	}
	for f := range p.bases {
		if outbound.LacksDynamicDNS(n, &f) {
			return
		}
	}
	outbound.Served(p.tables.faults)
}

// advance brings every base and class that d touches to v, tells the Sink, also of the endpoints that waited for that,
// and moves the clients whose facts changed.
func (p *Planner) advance(v *snapshot.View, d *changes, late classes.Endpoints) (bases, renewed int) {
	prev := p.current
	p.current = v
	if prev == nil {
		p.sink.Advanced(nil, late)
		return 0, 0
	}
	clear(p.failed)
	p.tables.faults.Begin(&d.Delta)
	sets := map[*classes.Class]*classes.ResourceSet{}
	if !d.EndpointsOnly() {
		affected, concerned := p.affectedBy(prev, v, &d.Delta)
		p.memo = affected.Memo
		c := &change{v, affected, objectsIn(&d.Delta), sets}
		bases = p.advanceFamilies(c) + len(concerned)
		p.advanceConcerned(concerned, prev.Snapshot, c)
		sets = c.sets
	}
	moved := p.inDoubt(prev, v, d)
	for c := range moved {
		p.tables.faults.Contain(c, "proxy "+c.proxy.ID, nil, func() { p.refreshOwn(c, sets) })
	}
	if len(sets)+len(late.Services) > 0 {
		p.sink.Advanced(sets, late)
	}
	for c := range moved {
		p.settleClass(c)
	}
	return bases, len(sets)
}

// change is what one step of the planner works in: what it touches, and the ResourceSets that come of it. objects are
// those that changed.
type change struct {
	view     *snapshot.View
	affected *scope.Affected
	objects  []value.ObjectKey
	sets     map[*classes.Class]*classes.ResourceSet
}

// affectedBy returns what a change touches, and the bases of no family that it may concern: all, if finding out panics.
func (p *Planner) affectedBy(prev, v *snapshot.View, d *snapshot.Delta) (affected *scope.Affected,
	concerned []*baseState) {
	if p.tables.faults.Contain(finding{"touched"}, "a change", objectsIn(d), func() {
		affected = scope.AffectedBy(prev.Snapshot, v.Snapshot, d)
		concerned = p.interest.in(affected, prev.Snapshot, v.Snapshot)
	}) {
		return affected, concerned
	}
	return &scope.Affected{All: true}, slices.Clone(p.interest.all.list)
}

// advanceConcerned brings bases of no family to what changed.
func (p *Planner) advanceConcerned(bases []*baseState, old *snapshot.Snapshot, c *change) {
	s := p.tables.newHostsStep(c.affected, old, c.view.Snapshot)
	if s != nil && len(c.sets) == 0 {
		c.sets = make(map[*classes.Class]*classes.ResourceSet, len(bases)) // nearly all of them get another one
	}
	for len(bases) > 0 {
		if bases = bases[p.advanceAll(s, bases, c):]; len(bases) > 0 {
			p.advanceBase(bases[0], c)
			bases = bases[1:]
		}
	}
}

// advanceAll brings bases to the step, up to the first for which it is not, or for which that panics.
func (p *Planner) advanceAll(s *hostsStep, bases []*baseState, c *change) (next int) {
	defer func() {
		if r := recover(); r != nil {
			bases[next].broken = true // it is made from nothing, and what panics there is told
		}
	}()
	host := anyOf(c.affected.Routes)
	for next = 0; next < len(bases) && s != nil && bases[next].hasHosts(); next++ {
		if next%ahead == 0 {
			prefetch(bases[next:min(next+ahead, len(bases))], host)
		}
		bs := bases[next]
		p.tables.faults.Enter(bs)
		old := bs.base
		bs.base = s.advance(old)
		p.followClasses(bs, c, old)
	}
	return next
}

// hasHosts reports whether a hostsStep can bring the base to a change: it is one of a Sidecar or a default scope.
func (bs *baseState) hasHosts() bool {
	sc := bs.base.scope
	return !bs.broken && bs.family == nil && sc.Parts == nil && sc.Traits.Type != value.Router
}

// inDoubt returns the clients whose class may be another one, and those that are stuck: all, if finding out panics.
func (p *Planner) inDoubt(prev, v *snapshot.View, d *changes) (out map[*client]struct{}) {
	if !p.tables.faults.Contain(finding{"affected"}, "a change", objectsIn(&d.Delta),
		func() { out = p.affected(prev, v, d) }) {
		out = map[*client]struct{}{}
		for _, c := range p.clients {
			out[c] = struct{}{}
		}
	}
	maps.Copy(out, p.stuck)
	return out
}

// finding names a search of the planner that may panic.
type finding struct{ name string }

// maxAccused is up to how many changed objects a panic in the planner is reported on.
const maxAccused = 16

// objectsIn returns the objects that a change names, unless they are too many for any to be suspicious.
func objectsIn(d *snapshot.Delta) []value.ObjectKey {
	if len(d.Objects) > maxAccused {
		return nil
	}
	return slices.Collect(maps.Keys(d.Objects))
}

// advanceBase brings a base and the classes that stand on it to v. A base that a step skipped stands at an older
// Snapshot, but at an equal one for its scope. Where it panics, the base stays as it was, and is made from nothing when
// the next change touches it; so is the ResourceSet of a class.
func (p *Planner) advanceBase(bs *baseState, c *change) {
	old, anew := bs.base, c.affected.All || bs.broken
	bs.broken = !p.tables.faults.Contain(bs, "proxies of namespace "+bs.facts.Namespace, c.objects, func() {
		if anew {
			bs.base = p.newBase(bs.family, bs.facts, old.scope.Labels)
		} else {
			bs.base = p.tables.advance(old, c.view.Snapshot, c.affected)
		}
	})
	if bs.broken {
		return
	}
	bs.beside = bs.family.outsiderNow()
	p.advanceClasses(bs, c, old, anew)
}

// refreshOwn renews the ResourceSet of a client's class if the values behind its own ports, or its policies, are others
// now, while they are the same ports and policies by name.
func (p *Planner) refreshOwn(c *client, sets map[*classes.Class]*classes.ResourceSet) {
	own, id := ownOf(p.current, c.proxy)
	if id != c.class.id || slices.Equal(own.Targets, c.class.own.Targets) &&
		own.Policies == c.class.own.Policies {
		return // it moves to another class, or another member of the class has renewed it
	}
	c.class.own = own
	p.renew(c.class, sets)
}

// affected returns the clients whose class may be another one, or whose own part may differ.
func (p *Planner) affected(prev, v *snapshot.View, d *changes) map[*client]struct{} {
	out := map[*client]struct{}{}
	if d.All || !prev.Snapshot.ReadsSame(v.Snapshot) {
		for _, c := range p.clients {
			out[c] = struct{}{}
		}
		return out
	}
	at := func(address string) {
		for _, c := range p.byAddress[address] {
			out[c] = struct{}{}
		}
	}
	for a := range d.Workloads {
		at(a)
	}
	for k := range d.Services {
		if v.Snapshot.Mesh.Access.AsksAt(k.Host) {
			p.addAskers(out)
		}
	}
	for a := range d.addresses {
		at(a)
	}
	for k := range d.ServiceKeys() {
		for c := range p.byNamespace[k.Namespace] {
			if _, ok := out[c]; !ok && (c.proxy.Traits.Type == value.Router || workload.Of(prev, c.proxy).DependsOn(k) ||
				workload.Of(v, c.proxy).DependsOn(k)) {
				out[c] = struct{}{}
			}
		}
	}
	for k, change := range d.Objects {
		if k.Namespace == v.Snapshot.Mesh.RootNamespace {
			for _, clients := range p.byNamespace {
				selected(v, change, clients, out)
			}
		} else {
			selected(v, change, p.byNamespace[k.Namespace], out)
		}
	}
	return out
}

// addAskers adds those clients to out whose policies ask a server of the mesh's.
func (p *Planner) addAskers(out map[*client]struct{}) {
	for _, c := range p.clients {
		if s := c.class; s != nil && (s.own.Policies.Asked != value.Asked{} ||
			s.base.facts.Policies.Asked != value.Asked{}) {
			out[c] = struct{}{}
		}
	}
}

// selected adds those of clients to out whose workloads an object selects, before or after it changed. Workloads whose
// labels changed are in doubt anyway.
func selected(v *snapshot.View, c snapshot.Change[value.Value], clients, out map[*client]struct{}) {
	for _, o := range []value.Value{c.Old, c.New} {
		selecting, ok := o.(value.Selecting)
		if !ok {
			continue
		}
		selector := selecting.Selector()
		for client := range clients {
			if len(selector) == 0 || workload.Of(v, client.proxy).Labels().Contains(selector) {
				out[client] = struct{}{}
			}
		}
	}
}
