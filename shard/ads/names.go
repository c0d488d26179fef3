package ads

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/pilotd/pilotd/snapshot/chunked"
)

// ErrNames says that a run of name fields does not decode.
var ErrNames = errors.New("resource names do not decode")

// MaxName is the most bytes that the name of a resource may have. The longest that anybody uses are paths of files and
// SPIFFE identities.
const MaxName = 4 << 10

// LongNameError says that a name has more than MaxName bytes.
type LongNameError struct{ Bytes int }

// Error tells how many it has.
func (e *LongNameError) Error() string {
	return fmt.Sprintf("a resource name has %d bytes, the limit is %d", e.Bytes, MaxName)
}

// Names is a set of resource names, interned: equal sets of one NamesTable are one pointer. nil is the empty set.
type Names struct {
	// Immutable.
	set chunked.Map[struct{}]

	// admitted is whether a stream was let name it: then it is there, and costs nothing more when others do.
	admitted atomic.Bool
}

// fresh returns how many bytes it takes that are not there for others anyway.
func (n *Names) fresh() int {
	if n == nil || n.admitted.Load() {
		return 0
	}
	return n.Bytes()
}

// admit notes that a stream may name it.
func (n *Names) admit() {
	if n != nil && !n.admitted.Load() {
		n.admitted.Store(true)
	}
}

// Contains reports whether name is in the set.
func (n *Names) Contains(name string) bool {
	if n == nil {
		return false
	}
	_, ok := n.set.Get(name)
	return ok
}

// Map returns the names as the keys of a Map. Sets of one NamesTable that have much in common share chunks of it.
func (n *Names) Map() chunked.Map[struct{}] {
	if n == nil {
		return chunked.Map[struct{}]{}
	}
	return n.set
}

// Len returns the number of names.
func (n *Names) Len() int {
	if n == nil {
		return 0
	}
	return n.set.Len()
}

// nameCost is what a name in a set costs besides its text.
const nameCost = 32

// Bytes returns how much memory the set takes.
func (n *Names) Bytes() int {
	if n == nil {
		return 0
	}
	return n.set.Weigh(func(name string, _ struct{}) int { return len(name) + nameCost })
}

// All yields the names in order.
func (n *Names) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		if n == nil {
			return
		}
		for name := range n.set.All() {
			if !yield(name) {
				return
			}
		}
	}
}

const (
	// maxSpellings bounds how many encodings of one set a table remembers: each Envoy has an order of its own.
	maxSpellings = 4096
	// maxAllSpellings bounds those of all sets. A client can send a few names in any number of orders.
	maxAllSpellings = 1 << 16
)

// NamesTable interns sets of names. A set stays while anyone holds it and then leaves by itself. Safe for concurrent
// use.
type NamesTable struct {
	// Immutable after NewNamesTable.
	seeds [2]maphash.Seed
	pool  *chunked.Pool[struct{}] // of the chunks of all sets

	limit atomic.Int64 // of held; zero for none
	// bytes of all sets and Versions that anybody holds, and of those that no collection has found yet
	held atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	sets      map[chunked.Sum]*namesSlot
	spellings map[spelling]*namesSlot
}

// spelling is a hash of the encoded form of a set, keyed by the table's seeds.
type spelling [2]uint64

// namesSlot is the place of one set. Guarded by the table's mu.
type namesSlot struct {
	names     weak.Pointer[Names]
	sum       chunked.Sum
	bytes     int
	spellings []spelling // oldest first
}

// NewNamesTable makes an empty table. A process needs one.
func NewNamesTable() *NamesTable {
	return &NamesTable{
		seeds:     [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		sets:      map[chunked.Sum]*namesSlot{},
		spellings: map[spelling]*namesSlot{},
		pool:      chunked.NewPool[struct{}](),
	}
}

// Intern returns the set in raw, a run of length-delimited fields (tag, length, name) as a request carries its
// resource_names; whichever field number they have. A run that was seen before is recognised by its hash, and names
// that were seen before in another order by the sum of theirs; neither is decoded. A large set that is not there yet
// and has no room is refused before it is decoded: who is refused costs little, and comes again. Nothing of raw is
// kept.
func (t *NamesTable) Intern(raw []byte) (*Names, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	sp := spelling{maphash.Bytes(t.seeds[0], raw), maphash.Bytes(t.seeds[1], raw)}
	if n := t.spelled(sp); n != nil {
		return n, nil
	}
	l, err := t.list(raw)
	if err != nil {
		return nil, err
	}
	n := t.spelled(l.spelling)
	if n == nil {
		if l.bytes > fairBytes && !t.hasRoom(spareShare*l.bytes) {
			return nil, fmt.Errorf("%w: this one names %d", ErrAllTooManyBytes, l.bytes)
		}
		n = t.edit(chunked.Map[struct{}]{}, l.decode(raw), nil)
		t.learn(n, l.spelling)
		if l.bytes > fairBytes {
			n.admit()
		}
	}
	t.learn(n, sp)
	return n, nil
}

// Of returns the set of names, in any order and with repeats. A list that was seen before, in whatever order, is
// recognised by the sum of its names' hashes.
func (t *NamesTable) Of(names []string) *Names {
	if len(names) == 0 {
		return nil
	}
	sp := t.listed(names)
	if n := t.spelled(sp); n != nil {
		return n
	}
	n := t.edit(chunked.Map[struct{}]{}, names, nil)
	t.learn(n, sp)
	return n
}

// Edit returns n with names added and others taken away.
func (t *NamesTable) Edit(n *Names, add, remove []string) *Names {
	if len(add)+len(remove) == 0 {
		return n
	}
	if n == nil && len(remove) == 0 {
		return t.Of(add)
	}
	if n == nil {
		n = &Names{}
	}
	return t.edit(n.set, add, remove)
}

// Union returns the names of a and b.
func (t *NamesTable) Union(a, b *Names) *Names {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	case a.Len() < b.Len():
		a, b = b, a
	}
	return t.Edit(a, slices.Collect(b.All()), nil)
}

// Minus returns the names of a that are not in b.
func (t *NamesTable) Minus(a, b *Names) *Names {
	if a == b || a == nil {
		return nil
	}
	if b == nil {
		return a
	}
	var gone []string
	a.set.Diff(b.set, func(c chunked.Change[struct{}]) {
		if c.InNew {
			gone = append(gone, c.Key)
		}
	})
	return t.Of(gone)
}

func (t *NamesTable) edit(set chunked.Map[struct{}], add, remove []string) *Names {
	edits := make([]chunked.Edit[struct{}], 0, len(add)+len(remove))
	for _, n := range add {
		edits = append(edits, chunked.Edit[struct{}]{Key: n})
	}
	for _, n := range remove {
		edits = append(edits, chunked.Edit[struct{}]{Key: n, Delete: true})
	}
	set = t.pool.Share(set.Apply(edits))
	if set.Len() == 0 {
		return nil
	}
	sum := set.Digest(func(name string, _ struct{}) chunked.Sum { return hashBytes([]byte(name)) }, joinSums)
	t.mu.Lock()
	defer t.mu.Unlock()
	if slot, ok := t.sets[sum]; ok {
		if n := slot.names.Value(); n != nil {
			return n
		}
		t.remove(slot)
	}
	n := &Names{set: set}
	slot := &namesSlot{names: weak.Make(n), sum: sum, bytes: n.Bytes()}
	t.sets[sum] = slot
	t.held.Add(int64(slot.bytes))
	runtime.AddCleanup(n, t.drop, slot)
	return n
}

func hashBytes(b []byte) chunked.Sum {
	h := sha256.Sum256(b)
	return chunked.Sum(h[:16])
}

func joinSums(sums []chunked.Sum) chunked.Sum {
	h := sha256.New()
	for _, s := range sums {
		h.Write(s[:])
	}
	var out [sha256.Size]byte
	return chunked.Sum(h.Sum(out[:0])[:16])
}

// spelled returns the set that is known to be encoded so, or nil.
func (t *NamesTable) spelled(sp spelling) *Names {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slot, ok := t.spellings[sp]; ok {
		return slot.names.Value()
	}
	return nil
}

// learn remembers that n is also encoded as sp.
func (t *NamesTable) learn(n *Names, sp spelling) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := n.set.Digest(nil, joinSums) // every chunk has its digest already
	slot, ok := t.sets[sum]
	if !ok {
		return
	}
	if old, ok := t.spellings[sp]; ok && old == slot {
		return
	}
	if len(t.spellings) >= maxAllSpellings {
		for _, slot := range t.sets { // they save time, and those in use come again
			slot.spellings = nil
		}
		t.spellings = map[spelling]*namesSlot{}
	}
	if len(slot.spellings) >= maxSpellings {
		delete(t.spellings, slot.spellings[0])
		slot.spellings = slot.spellings[1:]
	}
	slot.spellings = append(slot.spellings, sp)
	t.spellings[sp] = slot
}

// drop forgets a set that nobody holds any more.
func (t *NamesTable) drop(slot *namesSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(slot)
}

// remove takes slot out; the caller holds mu.
func (t *NamesTable) remove(slot *namesSlot) {
	if t.sets[slot.sum] == slot {
		delete(t.sets, slot.sum)
		t.held.Add(-int64(slot.bytes))
	}
	for _, sp := range slot.spellings {
		if t.spellings[sp] == slot {
			delete(t.spellings, sp)
		}
	}
}

// SetLimit bounds the bytes of all that clients name. Beyond it a stream may name a little: see Session.
func (t *NamesTable) SetLimit(bytes int) { t.limit.Store(int64(bytes)) }

// Bytes returns how many bytes the names have that all clients of the table subscribe to.
func (t *NamesTable) Bytes() int { return int(t.held.Load()) }

// hasRoom reports whether so many bytes more are within the limit.
func (t *NamesTable) hasRoom(bytes int) bool {
	limit := t.limit.Load()
	return limit <= 0 || t.held.Load()+int64(bytes) <= limit
}

// Len returns the number of sets that are held now. Collected sets leave after a garbage collection.
func (t *NamesTable) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sets)
}
