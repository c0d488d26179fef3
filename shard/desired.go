package shard

import (
	"slices"
	"weak"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// desired is a ResourceSet joined with the endpoints of now. It implements ads.Desired for the Sessions of one worker.
type desired struct {
	// Immutable after newDesired.
	set       *classes.ResourceSet
	resources []*ads.Resources // by type: the sections that are ready made; nil for the type that endpoints has
	// endpoints has the resources that are made from endpoints; nil if the ResourceSet has these ready made, too.
	endpoints *joined
}

// Resources implements ads.Desired.
func (t *desired) Resources(typ xdstype.Type, sub ads.Subscription) *ads.Resources {
	if c := t.resources[typ]; c != nil {
		return c
	}
	return t.endpoints.cover(sub)
}

// newDesired joins a ResourceSet with the endpoints of now. prev is what the class had before, or nil.
func (e *endpoints) newDesired(set *classes.ResourceSet, prev *desired) *desired {
	t := &desired{set: set, resources: make([]*ads.Resources, e.shards.opts.Types.Len())}
	for i := range t.resources {
		typ := xdstype.Type(i)
		section := set.Sections.Of(typ)
		if e.shards.opts.Types.Row(typ).Source == xdstype.FromEndpoints && section.Len() == 0 {
			t.endpoints = e.joinedOf(set, prev)
			continue
		}
		var had *ads.Resources
		if prev != nil {
			had = prev.resources[typ]
		}
		switch {
		case had == nil:
			t.resources[typ] = e.resources.intern(typ, section)
		case had.Section.Same(section):
			t.resources[typ] = had
		default:
			t.resources[typ] = e.resources.intern(typ, section)
			dropEncoded(had.Section, section)
		}
	}
	return t
}

// dropEncoded gives back the memory of what was superseded: clients that stall still hold the Entries.
func dropEncoded(old, now classes.Section) {
	now.Diff(old, func(c chunked.Change[*encodecache.Entry]) {
		if c.InOld {
			c.Old.Drop()
		}
	})
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

// after returns the services that changed after seq; not complete when the log does not reach back so far.
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

// resourcesTable finds the Resources of a section that another class has too. Its pointers are weak: it keeps nothing
// alive.
type resourcesTable map[resourcesKey][]weak.Pointer[ads.Resources]

type resourcesKey struct {
	typ   xdstype.Type
	len   int
	first encodecache.Sum
}

// alike is how many sections of one key are told apart.
const alike = 8

func (t resourcesTable) intern(typ xdstype.Type, s classes.Section) *ads.Resources {
	key := resourcesKey{typ: typ, len: s.Len()}
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
	c := &ads.Resources{Section: s}
	if len(live) == alike {
		live = append(live[:0], live[1:]...)
	}
	t[key] = append(live, weak.Make(c))
	return c
}

// sweep forgets Resources that nobody has any more.
func (t resourcesTable) sweep() {
	for key, all := range t {
		all = slices.DeleteFunc(all, func(w weak.Pointer[ads.Resources]) bool { return w.Value() == nil })
		if len(all) == 0 {
			delete(t, key)
			continue
		}
		t[key] = all
	}
}
