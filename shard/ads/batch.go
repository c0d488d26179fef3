package ads

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Batch is the content of one response. Sessions that get the same Batch send the same bytes, nonce included. It is
// immutable but for what is worked out on demand; the worker that owns the Differ does that.
type Batch struct {
	TypeURL string
	Delta   bool
	Nonce   string
	// Version is the version_info; State-of-the-World only.
	Version string
	Entries []*encodecache.Entry
	// Section has the same resources as Entries, in chunks that are shared with other Batches. It is empty where the
	// Entries are not a whole Section.
	Section Section
	// Removed are the removed_resources; Delta only.
	Removed []string

	// label is what a Session remembers of the response once it is sent.
	label *label
	// items are the resources that the response changes, or repeats on purpose. A response that must be complete has more
	// Entries than items. Where whole is set they are worked out on demand: see about.
	items []item
	whole *whole
	// changed are the names of the items that exist, added those of them that the client did not have. Both are worked out
	// on demand.
	changed, added *Names
	named          bool
	// all are the names of the items; worked out on demand.
	all   *Names
	known bool

	// Owned by the worker goroutine.
	undos map[undoKey]*Resources
}

type undoKey struct {
	have     *Resources
	accepted had
}

// item is one resource that a Batch is about: what the client had (nil: nothing, or it is not known) and what it gets
// (nil: the resource is removed).
type item struct {
	name     string
	old, new *encodecache.Entry
	// had tells that the client has some version from an earlier stream.
	had bool
}

func (it item) exists() bool { return it.new != nil }

// undone returns have with undo applied: what the response changed is as accepted has it. Callers at the same state get
// the same pointer.
func (b *Batch) undone(have *Resources, accepted had, undo []chunked.Edit[*encodecache.Entry]) *Resources {
	key := undoKey{have, accepted}
	if c, ok := b.undos[key]; ok {
		return c
	}
	if b.undos == nil {
		b.undos = map[undoKey]*Resources{}
	}
	c := &Resources{Section: have.section().Apply(undo)}
	b.undos[key] = c
	return c
}

// about returns the items, and works them out if nobody has asked before.
func (b *Batch) about() []item {
	if b.whole != nil {
		b.items, b.whole = b.whole.items(), nil
	}
	return b.items
}

// sameContent reports whether a client that has a already has what b says.
func sameContent(a, b *encodecache.Entry) bool {
	return a == b || a != nil && b != nil && a.Sum() == b.Sum()
}

// names works out changed and added.
func (b *Batch) names(table *NamesTable) (changed, added *Names) {
	if !b.named {
		var all, fresh []string
		for _, it := range b.about() {
			if it.new == nil {
				continue
			}
			all = append(all, it.name)
			if it.old == nil && !it.had {
				fresh = append(fresh, it.name)
			}
		}
		b.changed, b.added, b.named = table.Of(all), table.Of(fresh), true
	}
	return b.changed, b.added
}

// every works out the names of all items.
func (b *Batch) every(table *NamesTable) *Names {
	if !b.known {
		names := make([]string, 0, len(b.about()))
		for _, it := range b.about() {
			names = append(names, it.name)
		}
		b.all, b.known = table.Of(names), true
	}
	return b.all
}

// entry returns the resource of that name that the response carries, or nil.
func (b *Batch) entry(name string) *encodecache.Entry {
	i, ok := slices.BinarySearchFunc(b.Entries, name,
		func(e *encodecache.Entry, name string) int { return strings.Compare(e.Name(), name) })
	if !ok {
		return nil
	}
	return b.Entries[i]
}

// mentioned remembers the last answer of mention.
type mentioned struct {
	of  *Names
	yes bool
}

func (m *mentioned) in(items func() []item, names *Names) bool {
	if m.of != names {
		m.of, m.yes = names, mention(items(), names)
	}
	return m.yes
}

// mentionBudget is how many bytes mention searches. After that it answers true, which only costs a wait.
const mentionBudget = 4 << 20

// mention reports whether one of items may contain one of names. It searches the encoded bytes, in which a protobuf
// message has its strings as they are.
func mention(items []item, names *Names) bool {
	budget := mentionBudget
	for _, it := range items {
		if it.new == nil {
			continue
		}
		for f := range it.new.Parts() {
			if budget -= len(f.Bytes()) * names.Len(); budget < 0 {
				return true
			}
			for name := range names.All() {
				if bytes.Contains(f.Bytes(), []byte(name)) {
					return true
				}
			}
		}
	}
	return false
}
