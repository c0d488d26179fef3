package ads

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Batch is the content of one response. The Sessions that are sent the same Batch are sent the same bytes, nonce
// included. Immutable but for what is worked out on demand, which the worker that owns the Differ does.
type Batch struct {
	TypeURL string
	Delta   bool
	Nonce   string
	// Version is the version_info; State-of-the-World only.
	Version string
	Entries []*encodecache.Entry
	// Section, unless it is empty, is what the Entries are all of: its chunks are shared with other Batches.
	Section Section
	// Removed are the removed_resources; Delta only.
	Removed []string

	// label is what those who were sent the response keep of it.
	label *label
	// items are what the response changes or repeats on purpose; the Entries of a complete one hold more. Those of a
	// whole are worked out on demand: see about.
	items []item
	whole *whole
	// changed are the names among items that exist, added those that the client did not have; worked out on demand.
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

// item is one resource that a Batch is about: what the client had (nil: nothing, or unknown) and gets (nil: it goes).
type item struct {
	name     string
	old, new *encodecache.Entry
	// had tells that the client has some version from an earlier stream.
	had bool
}

func (it item) exists() bool { return it.new != nil }

// undone is have with what the response changed put back as accepted has it; all that were at the same state get the
// same pointer.
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

// about returns the items.
func (b *Batch) about() []item {
	if b.whole != nil {
		b.items, b.whole = b.whole.items(), nil
	}
	return b.items
}

// sameContent reports whether a client that has a need not be sent b.
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

// mentioned remembers the last answer of mention about one thing.
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

// mentionBudget is how many bytes mention searches before it assumes the worst.
const mentionBudget = 4 << 20

// mention reports whether one of items may contain one of names. The names of a protobuf message stand in its bytes as
// they are.
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
