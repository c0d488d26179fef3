package nametable

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// Tables hold what name tables are put together from, for all Scopes of a process.
type Tables struct {
	names checked.Table[gen.NamesKey, encodecache.Fragment]
	links *encodecache.Table[gen.NamesLink, gen.NamesLink]
	pool  *chunked.Pool[*encodecache.Fragment]
}

// New makes empty Tables.
func New(f *checked.Faults) *Tables {
	return &Tables{
		names: checked.Fragments(f, "names", gen.EncodeNames),
		links: encodecache.NewTable(func(k gen.NamesLink) *gen.NamesLink { return &k }),
		pool:  chunked.NewPool[*encodecache.Fragment](),
	}
}

// Sizes are how many Keys each table holds, and chunks the pool, by the noun.
func (t *Tables) Sizes() map[string]int {
	return map[string]int{"names.hosts": t.names.Len(), "names.links": t.links.Len(), "names.chunks": t.pool.Len()}
}

// Table is the name table of a Scope at a Snapshot.
type Table struct {
	// Immutable after its constructor.
	tables  *Tables
	section chunked.Map[*encodecache.Entry]
	// parent is the Table of another Scope, from which this one differs by changes; nil if it is made from nothing.
	parent *Table
	// changes are what differs from the parent or, without one, from the Table of the same Scope before; nil if that is
	// not known.
	changes []change

	// at is of what the Table is to be made where it has no parent; nil once it is made.
	at    atomic.Pointer[source.At]
	asked atomic.Bool
	once  sync.Once
	names fragments // immutable after once
}

// fragments are the encoded names of each host, by the host, and those of its pods, by a key that comes after all
// hosts: of two names that are equal the last counts, and that of a pod comes before that of a ServiceEntry.
type fragments = chunked.Map[*encodecache.Fragment]

// change is a host of which the names are others.
type change struct {
	host string
	keys hostKeys
}

// Make returns the Table of a Scope, which nobody has asked for.
func (t *Tables) Make(at source.At) source.Part { return t.open(&Table{}, at) }

// open completes a Table.
func (t *Tables) open(table *Table, at source.At) *Table {
	table.tables = t
	table.atLast(at)
	e := encodecache.NewLater(xdstype.NameTableURL, "", table.content)
	table.section = table.section.Set("", e)
	return table
}

// Advance is old, which is the Table of from, brought to where to is: another Snapshot for the same Scope, or the same
// Snapshot for another Scope of the family. hosts are those whose services may differ. It is old itself if none does.
func (t *Tables) Advance(old source.Part, from, to source.At, hosts iter.Seq[string]) source.Part {
	table := old.(*Table)
	var changes []change
	to.Scope = to.Scope.Unwatched()
	for host := range hosts {
		was, is := t.keysOf(from, host), t.keysOf(to, host)
		if was != is {
			changes = append(changes, change{host, is})
		}
	}
	switch {
	case len(changes) == 0:
		return table.atLast(to)
	case from.Scope.Facts != to.Scope.Facts:
		return t.open(&Table{parent: table, changes: changes}, to)
	}
	return t.after(table, to, changes)
}

// atLast tells a Table that it is the same at another Snapshot, so that it holds no older one.
func (table *Table) atLast(at source.At) *Table {
	if table.parent == nil && !table.asked.Load() {
		at.Scope = at.Scope.Unwatched()
		table.at.Store(&at)
	}
	return table
}

// after is the Table that follows old when changes are all that differs.
func (t *Tables) after(old *Table, at source.At, changes []change) *Table {
	next := t.open(&Table{changes: changes}, at)
	if old.asked.Load() {
		next.take(t.apply(old.made(), changes))
	}
	return next
}

// Follow is old brought to where is follows was: it is the Table of a Scope to which all changes between these two mean
// the same.
func (t *Tables) Follow(old, was, is source.Part, at source.At) source.Part {
	table := old.(*Table)
	switch {
	case was == is:
		return table.atLast(at)
	case old == was:
		return is
	case table.parent == was:
		next := t.open(&Table{parent: is.(*Table), changes: table.changes}, at)
		if table.asked.Load() {
			next.made()
		}
		return next
	}
	return t.after(table, at, is.(*Table).changes)
}

// Section is the section with the one resource.
func (table *Table) Section() (xdstype.Type, chunked.Map[*encodecache.Entry]) {
	return xdstype.NameTable, table.section
}

// content is that of the resource.
func (table *Table) content() encodecache.Content {
	names := table.made()
	m := names.Measure(func(_ string, f *encodecache.Fragment) chunked.Measure {
		return chunked.Measure{Sum: chunked.Sum(f.Sum()), Weight: len(f.Bytes())}
	})
	return encodecache.Content{Version: encodecache.Sum(m.Sum), Size: m.Weight,
		Parts: func(yield func(*encodecache.Fragment) bool) {
			for _, f := range names.All() {
				if !yield(f) {
					return
				}
			}
		}}
}

// take gives the Table names that are made already.
func (table *Table) take(names fragments) {
	table.asked.Store(true)
	table.once.Do(func() {
		table.names = names
		table.at.Store(nil)
	})
}

// made are the names, made now if nobody has asked for them before.
func (table *Table) made() fragments {
	table.asked.Store(true)
	table.once.Do(func() {
		if table.parent != nil {
			table.names = table.tables.apply(table.parent.made(), table.changes)
		} else {
			table.names = table.tables.from(*table.at.Load())
		}
		table.at.Store(nil)
	})
	return table.names
}

// apply is names with other ones for the hosts that differ.
func (t *Tables) apply(names fragments, changes []change) fragments {
	edits := make([]chunked.Edit[*encodecache.Fragment], 0, 2*len(changes))
	for _, c := range changes {
		edits = t.appendEdits(edits, c)
	}
	return t.pool.Share(names.Apply(edits))
}

// from are the names of all hosts that a Scope sees.
func (t *Tables) from(at source.At) fragments {
	var edits []chunked.Edit[*encodecache.Fragment]
	for host, keys := range t.all(at) {
		edits = t.appendEdits(edits, change{host, keys})
	}
	return t.pool.Share(fragments{}.Apply(edits))
}

// pods is the first byte of the key of the names of a host's pods. No host has it.
const pods = "\x7f"

func (t *Tables) appendEdits(edits []chunked.Edit[*encodecache.Fragment], c change) []chunked.Edit[*encodecache.Fragment] {
	for _, of := range []struct {
		key  string
		from gen.NamesKey
	}{{c.host, c.keys.host}, {pods + c.host, c.keys.pods}} {
		edit := chunked.Edit[*encodecache.Fragment]{Key: of.key, Delete: true}
		if of.from.Service != nil {
			if f := t.names.Get(of.from); len(f.Bytes()) > 0 {
				edit.Value, edit.Delete = f, false
			}
		}
		edits = append(edits, edit)
	}
	return edits
}
