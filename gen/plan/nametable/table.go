package nametable

import (
	"iter"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// Tables hold what name tables are put together from, for all Scopes of a process. They implement source.Source.
type Tables struct {
	names checked.Table[gen.NamesKey, encodecache.Fragment]
	links *encodecache.Table[gen.NamesLink, gen.NamesLink]
	runs  section.Runs
	pool  *chunked.Pool[*encodecache.Fragment]
}

// New makes empty Tables.
func New(f *checked.Faults) *Tables {
	return &Tables{
		names: checked.Fragments(f, "names", gen.EncodeNames),
		links: encodecache.NewTable(func(k gen.NamesLink) *gen.NamesLink { return &k }),
		runs:  section.NewRuns(),
		pool:  chunked.NewPool[*encodecache.Fragment](),
	}
}

// Sizes implements source.Source: how many Keys each table holds, and chunks the pool.
func (t *Tables) Sizes() map[string]int {
	return map[string]int{"nametable.names": t.names.Len(), "nametable.links": t.links.Len(),
		"nametable.runs": t.runs.Len(), "nametable.pool": t.pool.Len()}
}

// Type implements source.Source.
func (t *Tables) Type() xdstype.Type { return xdstype.NameTable }

// names are the encoded names of each host, by the host, and those of its pods, by a key that comes after all hosts: of
// two names that are equal the last counts, so that of a pod counts where a ServiceEntry has it for its host.
type names = chunked.Map[*encodecache.Fragment]

// Table is the name table of a Scope at a Snapshot. Immutable. It implements source.Part.
type Table struct {
	names   names
	section chunked.Map[*encodecache.Entry] // of one resource, which has no name
}

// Section implements source.Part.
func (table *Table) Section() (xdstype.Type, chunked.Map[*encodecache.Entry]) {
	return xdstype.NameTable, table.section
}

// table returns the Table of names. The version of its resource is a sum, so that it costs what an edit changes: each
// name is in its bytes.
func (t *Tables) table(n names) *Table {
	m := n.Measure(func(_ string, f *encodecache.Fragment) chunked.Measure {
		return chunked.Measure{Sum: chunked.Sum(f.Sum()), Weight: len(f.Bytes())}
	})
	e := encodecache.NewEntry(xdstype.NameTableURL, "", encodecache.Content{Version: encodecache.Sum(m.Sum),
		Size: m.Weight, Parts: func(yield func(*encodecache.Fragment) bool) {
			for _, f := range n.All() {
				if !yield(f) {
					return
				}
			}
		}}).InRuns(func(yield func(*encodecache.Run) bool) {
		for c := range n.Chunks() {
			if !yield(t.runs.Get(section.RunKey{Chunk: c})) {
				return
			}
		}
	})
	return &Table{names: n, section: chunked.Map[*encodecache.Entry]{}.Set("", e)}
}

// Make implements source.Source.
func (t *Tables) Make(at source.At) source.Part {
	at.Scope = at.Scope.Unwatched()
	var e chunked.Edits[*encodecache.Fragment]
	for host, keys := range t.all(at) {
		t.edit(&e, host, keys)
	}
	return t.table(t.pool.Share(e.Apply(names{})))
}

// Advance implements source.Source.
func (t *Tables) Advance(old source.Part, from, to source.At, hosts iter.Seq[string]) source.Part {
	table := old.(*Table)
	to.Scope = to.Scope.Unwatched()
	var e chunked.Edits[*encodecache.Fragment]
	for host := range hosts {
		if is := t.keysOf(to, host); is != t.keysOf(from, host) {
			e.Drop(host)
			e.Drop(podsOf(host))
			t.edit(&e, host, is)
		}
	}
	return t.with(table, e.Apply(table.names))
}

// with returns the Table of other names; old itself if they are the same.
func (t *Tables) with(old *Table, n names) source.Part {
	if n.Same(old.names) {
		return old
	}
	return t.table(t.pool.Share(n))
}

// Follow implements source.Source.
func (t *Tables) Follow(was, is source.Part) func(source.Part) source.Part {
	step := chunked.NewTransition(was.(*Table).names, is.(*Table).names)
	return func(old source.Part) source.Part {
		if old == was {
			return is
		}
		return t.with(old.(*Table), step.Of(old.(*Table).names))
	}
}

// podsOf returns the key of the names of a host's pods. No host begins like this.
func podsOf(host string) string { return "\x7f" + host }

// edit puts the names of a host and of its pods.
func (t *Tables) edit(e *chunked.Edits[*encodecache.Fragment], host string, keys hostKeys) {
	t.put(e, host, keys.host)
	t.put(e, podsOf(host), keys.pods)
}

// put puts the names of a Key, if there are any.
func (t *Tables) put(e *chunked.Edits[*encodecache.Fragment], key string, from gen.NamesKey) {
	if from.Service == nil {
		return
	}
	if f := t.names.Get(from); len(f.Bytes()) > 0 {
		e.Put(key, f)
	}
}
