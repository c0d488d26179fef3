package shard

import (
	"hash/maphash"
	"slices"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// joined has the endpoint resources of a ResourceSet, made from the newest EndpointTable, as far as anybody has asked
// for them. ResourceSets with the same assignments share it. Owned by the worker goroutine.
type joined struct {
	in      *endpoints
	set     *classes.ResourceSet // one that has these assignments
	content *ads.Resources
	seq     uint64 // of the worker's endpoint changes, up to which content is
	// asked are the subscriptions that content covers, forgotten when they are too many; all that it covers everything.
	asked map[*ads.Names]struct{}
	all   bool
	// users is how many class groups have it, and identity its key in the worker's joins: the identity of the assignments.
	users    int
	identity uint64
}

// maxAsked bounds asked.
const maxAsked = 1024

// joinedTable has the joined of all groups of a worker by the identity of their assignments. Owned by the worker
// goroutine.
type joinedTable struct {
	seed maphash.Seed
	by   map[uint64][]*joined
	// index finds the assignments that the endpoints of a service go into.
	index *chunked.Index[value.ServiceKey, *classes.Assignment, *joined]
}

func newJoinedTable() joinedTable {
	return joinedTable{seed: maphash.MakeSeed(), by: map[uint64][]*joined{},
		index: chunked.NewIndex[value.ServiceKey, *classes.Assignment, *joined](
			func(_ string, a *classes.Assignment) value.ServiceKey { return a.Service })}
}

// find returns the joined of those assignments, or nil, and their identity.
func (t *joinedTable) find(assignments chunked.Map[*classes.Assignment]) (*joined, uint64) {
	identity := assignments.Identity(t.seed)
	for _, j := range t.by[identity] {
		if j.set.Assignments.Same(assignments) {
			return j, identity
		}
	}
	return nil, identity
}

// retain counts one more class group that has j, which may be nil.
func (t *joinedTable) retain(j *joined) {
	if j == nil {
		return
	}
	if j.users++; j.users == 1 {
		t.by[j.identity] = append(t.by[j.identity], j)
		t.index.Add(j.set.Assignments, j)
	}
}

// release counts one class group less. A joined that no class group has is forgotten.
func (t *joinedTable) release(j *joined) {
	if j == nil {
		return
	}
	if j.users--; j.users > 0 {
		return
	}
	t.index.Remove(j.set.Assignments, j)
	left := slices.DeleteFunc(t.by[j.identity], func(o *joined) bool { return o == j })
	if t.by[j.identity] = left; len(left) == 0 {
		delete(t.by, j.identity)
	}
}

// joinedOf returns the joined of a ResourceSet's assignments. A new one takes over what prev has. The caller retains it
// in the table.
func (e *endpoints) joinedOf(set *classes.ResourceSet, prev *desired) *joined {
	if prev != nil && prev.endpoints != nil && prev.set.Assignments.Same(set.Assignments) {
		return prev.endpoints
	}
	had, identity := e.joins.find(set.Assignments)
	if had != nil {
		return had
	}
	j := &joined{in: e, set: set, identity: identity, content: &ads.Resources{}, seq: e.log.seq,
		asked: map[*ads.Names]struct{}{}}
	if prev == nil || prev.endpoints == nil {
		return j
	}
	old := prev.endpoints
	old.catchUp()
	var edits []chunked.Edit[*encodecache.Entry]
	set.Assignments.Diff(old.set.Assignments, func(c chunked.Change[*classes.Assignment]) {
		switch {
		case !c.InNew:
			edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: c.Key, Delete: true})
		case old.covers(c.Key):
			had, _ := old.content.Section.Get(c.Key)
			if r := e.tryEntry(c.New, had); r != nil {
				edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: c.Key, Value: r})
			}
		}
	})
	j.content = e.edited(old.content, edits)
	j.all = old.all
	for n := range old.asked {
		j.asked[n] = struct{}{}
	}
	return j
}

// edited returns c with edits. It shares what it can with the Resources of other ResourceSets.
func (e *endpoints) edited(c *ads.Resources, edits []chunked.Edit[*encodecache.Entry]) *ads.Resources {
	section := e.shards.sections.Share(c.Section.Apply(edits))
	if section.Same(c.Section) {
		return c
	}
	return &ads.Resources{Section: section}
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

// cover returns the resources, with those that sub asks for among them.
func (j *joined) cover(sub ads.Subscription) *ads.Resources {
	j.catchUp()
	if _, ok := j.asked[sub.Names]; j.all || ok && !sub.All || sub.None() {
		return j.content
	}
	var edits []chunked.Edit[*encodecache.Entry]
	add := func(a *classes.Assignment) {
		if _, ok := j.content.Section.Get(a.Name); !ok {
			if e := j.in.tryEntry(a, nil); e != nil {
				edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: a.Name, Value: e})
			}
		}
	}
	if sub.All {
		j.all = true
		for _, a := range j.set.Assignments.All() {
			add(a)
		}
	} else {
		if len(j.asked) >= maxAsked {
			clear(j.asked)
		}
		j.asked[sub.Names] = struct{}{}
		for name := range sub.Names.All() {
			if a, ok := j.set.Assignments.Get(name); ok {
				add(a)
			}
		}
	}
	j.content = j.in.edited(j.content, edits)
	return j.content
}

// catchUp applies the endpoint changes since the last call.
func (j *joined) catchUp() {
	if j.seq == j.in.log.seq {
		return
	}
	services, complete := j.in.log.after(j.seq)
	j.seq = j.in.log.seq
	var edits []chunked.Edit[*encodecache.Entry]
	renew := func(a *classes.Assignment, had *encodecache.Entry) {
		if e := j.in.tryEntry(a, had); e != had && e.Sum() != had.Sum() {
			edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: a.Name, Value: e})
			had.Drop()
		}
	}
	if !complete {
		for name, had := range j.content.Section.All() {
			if a, ok := j.set.Assignments.Get(name); ok {
				renew(a, had)
			}
		}
	}
	for s := range services {
		for _, a := range j.in.shards.opts.join.assignmentsOf(j.set, s) {
			if had, ok := j.content.Section.Get(a.Name); ok {
				renew(a, had)
			}
		}
	}
	j.content = j.in.edited(j.content, edits)
}
