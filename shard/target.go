package shard

import (
	"slices"
	"weak"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// target is a World joined with the endpoints of now. It implements ads.Target for the Sessions of one worker.
type target struct {
	// Immutable after newTarget.
	world     *plan.World
	contents  [4]*ads.Content // but EDS
	endpoints *joined
}

// Content implements ads.Target.
func (t *target) Content(typ ads.Type, sub ads.Subscription) *ads.Content {
	if typ == ads.Endpoints {
		return t.endpoints.cover(sub)
	}
	return t.contents[typ]
}

// newTarget is the target of a World. prev is the one of the same class before, or nil.
func (w *worker) newTarget(world *plan.World, prev *target) *target {
	t := &target{world: world}
	for typ, section := range map[ads.Type]plan.Section{ads.Clusters: world.Clusters, ads.Listeners: world.Listeners, ads.Routes: world.Routes} {
		if prev != nil && prev.contents[typ].Section.Same(section) {
			t.contents[typ] = prev.contents[typ]
			continue
		}
		t.contents[typ] = w.contents.intern(typ, section)
		if prev != nil {
			dropFrames(prev.contents[typ].Section, section)
		}
	}
	switch {
	case prev != nil && prev.world.Assignments.Same(world.Assignments):
		t.endpoints = prev.endpoints
	default:
		t.endpoints = w.joinedOf(world, prev)
	}
	return t
}

// dropFrames gives back the memory of what was superseded: clients that stall still hold the Entries.
func dropFrames(old, now plan.Section) {
	now.Diff(old, func(c chunked.Change[*encodecache.Entry]) {
		if c.InOld {
			c.Old.Drop()
		}
	})
}

// joined are the endpoint resources of a World, joined with the newest EndpointTable: those that anybody asked for. Worlds with the same
// assignments share it. Owned by the worker goroutine.
type joined struct {
	worker  *worker
	world   *plan.World // one that has these assignments
	content *ads.Content
	seq     uint64 // of the worker's endpoint changes, up to which content is
	// asked are the subscriptions that content covers, forgotten when they are too many; all that it covers everything.
	asked map[*ads.Names]struct{}
	all   bool
}

// maxAsked bounds asked.
const maxAsked = 1024

// joinedOf is the joined of a World's assignments; it takes over what prev had.
func (w *worker) joinedOf(world *plan.World, prev *target) *joined {
	for c := range w.crews {
		if c.target.world.Assignments.Same(world.Assignments) {
			return c.target.endpoints
		}
	}
	j := &joined{worker: w, world: world, content: &ads.Content{}, seq: w.log.seq, asked: map[*ads.Names]struct{}{}}
	if prev == nil {
		return j
	}
	old := prev.endpoints
	old.catchUp()
	var edits []chunked.Edit[*encodecache.Entry]
	world.Assignments.Diff(old.world.Assignments, func(c chunked.Change[*plan.Assignment]) {
		switch {
		case !c.InNew:
			edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: c.Key, Delete: true})
		case old.covers(c.Key):
			edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: c.Key, Value: w.entry(c.New)})
		}
	})
	j.content = w.edited(old.content, edits)
	j.all = old.all
	for n := range old.asked {
		j.asked[n] = struct{}{}
	}
	return j
}

// edited is c with edits. It shares what it can with the Contents of other Worlds.
func (w *worker) edited(c *ads.Content, edits []chunked.Edit[*encodecache.Entry]) *ads.Content {
	section := w.shards.sections.Share(c.Section.Apply(edits))
	if section.Same(c.Section) {
		return c
	}
	return &ads.Content{Section: section}
}

// covers reports whether somebody asked for name.
func (j *joined) covers(name string) bool {
	if j.all {
		return true
	}
	if _, ok := j.content.Section.Get(name); ok {
		return true
	}
	for n := range j.asked {
		if n.Contains(name) {
			return true
		}
	}
	return false
}

// cover is the resources, with those that sub asks for among them.
func (j *joined) cover(sub ads.Subscription) *ads.Content {
	j.catchUp()
	if _, ok := j.asked[sub.Names]; j.all || ok && !sub.All || sub.None() {
		return j.content
	}
	var edits []chunked.Edit[*encodecache.Entry]
	add := func(a *plan.Assignment) {
		if _, ok := j.content.Section.Get(a.Name); !ok {
			edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: a.Name, Value: j.worker.entry(a)})
		}
	}
	if sub.All {
		j.all = true
		for _, a := range j.world.Assignments.All() {
			add(a)
		}
	} else {
		if len(j.asked) >= maxAsked {
			clear(j.asked)
		}
		j.asked[sub.Names] = struct{}{}
		for name := range sub.Names.All() {
			if a, ok := j.world.Assignments.Get(name); ok {
				add(a)
			}
		}
	}
	j.content = j.worker.edited(j.content, edits)
	return j.content
}

// catchUp works in the endpoint changes since the last call.
func (j *joined) catchUp() {
	if j.seq == j.worker.log.seq {
		return
	}
	services, complete := j.worker.log.after(j.seq)
	j.seq = j.worker.log.seq
	var edits []chunked.Edit[*encodecache.Entry]
	renew := func(a *plan.Assignment, had *encodecache.Entry) {
		if e := j.worker.entry(a); e != had && e.Sum() != had.Sum() {
			edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: a.Name, Value: e})
			had.Drop()
		}
	}
	if !complete {
		for name, had := range j.content.Section.All() {
			if a, ok := j.world.Assignments.Get(name); ok {
				renew(a, had)
			}
		}
	}
	for s := range services {
		for _, a := range j.worker.shards.opts.join.assignmentsOf(j.world, s) {
			if had, ok := j.content.Section.Get(a.Name); ok {
				renew(a, had)
			}
		}
	}
	j.content = j.worker.edited(j.content, edits)
}

// changeLog remembers which services changed lately.
type changeLog struct {
	seq     uint64 // of the newest
	changes []map[value.ServiceKey]struct{}
}

// maxLogged bounds the log; who is further behind looks at all that it has.
const maxLogged = 128

func (l *changeLog) add(services map[value.ServiceKey]struct{}) {
	l.seq++
	if len(l.changes) == maxLogged {
		l.changes = slices.Delete(l.changes, 0, 1)
	}
	l.changes = append(l.changes, services)
}

// after are the services that changed after seq; not complete when the log does not reach back so far.
func (l *changeLog) after(seq uint64) (services map[value.ServiceKey]struct{}, complete bool) {
	n := l.seq - seq
	if n > uint64(len(l.changes)) {
		return nil, false
	}
	recent := l.changes[len(l.changes)-int(n):]
	if len(recent) == 1 {
		return recent[0], true
	}
	services = map[value.ServiceKey]struct{}{}
	for _, c := range recent {
		for s := range c {
			services[s] = struct{}{}
		}
	}
	return services, true
}

// contentTable finds the Content of a section that another class has too. It holds none, nor any resource.
type contentTable map[contentKey][]weak.Pointer[ads.Content]

type contentKey struct {
	typ   ads.Type
	len   int
	first encodecache.Sum
}

// alike is how many sections of one key are told apart.
const alike = 8

func (t contentTable) intern(typ ads.Type, s plan.Section) *ads.Content {
	key := contentKey{typ: typ, len: s.Len()}
	for _, e := range s.All() {
		key.first = e.Sum()
		break
	}
	live := t[key][:0]
	for _, w := range t[key] {
		c := w.Value()
		if c == nil {
			continue
		}
		if c.Section.Same(s) {
			return c
		}
		live = append(live, w)
	}
	c := &ads.Content{Section: s}
	if len(live) == alike {
		live = append(live[:0], live[1:]...)
	}
	t[key] = append(live, weak.Make(c))
	return c
}

// sweep forgets Contents that nobody has.
func (t contentTable) sweep() {
	for key, all := range t {
		all = slices.DeleteFunc(all, func(w weak.Pointer[ads.Content]) bool { return w.Value() == nil })
		if len(all) == 0 {
			delete(t, key)
			continue
		}
		t[key] = all
	}
}
