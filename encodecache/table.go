package encodecache

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/puzpuzpuz/xsync/v3"
)

// Sum is a content hash: 128 bits of SHA-256.
type Sum [16]byte

// Fragment is an encoded run of protobuf fields. Immutable.
type Fragment struct {
	bytes []byte
	sum   Sum
	from  origin
}

// NewFragment makes a Fragment of b, which the caller must not write again.
func NewFragment(b []byte) *Fragment {
	h := sha256.Sum256(b)
	return &Fragment{bytes: b, sum: Sum(h[:16])}
}

// Bytes returns the encoded fields; read only.
func (f *Fragment) Bytes() []byte { return f.bytes }

// Sum returns the hash of the bytes.
func (f *Fragment) Sum() Sum { return f.sum }

// Origin returns the Key that a Table made the Fragment from, or what NewFragmentFrom was given. It is nil for all
// others.
func (f *Fragment) Origin() any { return f.from.key() }

// NewFragmentFrom makes a Fragment of b, which the caller must not write again, that says that it was made from key. It
// is for Fragments that no Table holds; key is best a pointer to something that lives on anyway.
func NewFragmentFrom(b []byte, key any) *Fragment {
	f := NewFragment(b)
	f.from.of = key
	return f
}

// Table makes the V (a Fragment, an Entry, a Template) of each Key once and finds it again while anyone holds it. A
// Fragment or an Entry tells from which Key it was made: see Fragment.Origin.
type Table[K comparable, V any] struct {
	// Immutable after NewTable.
	fill func(K) *V

	slots *xsync.MapOf[K, *slot[K, V]]
	// fills counts the calls of fill, for metrics and tests.
	fills atomic.Uint64
}

// slot is the place of one Key; it leaves the table when its value is collected. It does not hold the value, and the
// value holds it.
type slot[K comparable, V any] struct {
	// Immutable.
	key K

	// Guarded by mu: the first caller fills while others wait.
	mu    sync.Mutex
	value weak.Pointer[V]
}

// NewTable makes a Table whose values are made by fill, a pure function of the Key, which returns a new value each
// time.
func NewTable[K comparable, V any](fill func(K) *V) *Table[K, V] {
	return &Table[K, V]{fill: fill, slots: xsync.NewMapOf[K, *slot[K, V]]()}
}

// Get returns the value of k, made now if nobody holds it yet.
func (t *Table[K, V]) Get(k K) *V {
	for {
		s, _ := t.slots.LoadOrCompute(k, func() *slot[K, V] { return &slot[K, V]{key: k} })
		if v := t.getFrom(s); v != nil {
			return v
		}
	}
}

// getFrom returns the value out of a slot, or nil if the slot left the table before it could be locked.
func (t *Table[K, V]) getFrom(s *slot[K, V]) *V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.value.Value(); v != nil {
		return v
	}
	if cur, ok := t.slots.Load(s.key); !ok || cur != s {
		return nil
	}
	v := t.fill(s.key)
	t.fills.Add(1)
	if m, ok := any(v).(made); ok {
		m.madeFrom(s)
	}
	s.value = weak.Make(v)
	runtime.AddCleanup(v, t.drop, s)
	return v
}

// drop removes a slot if its value is gone for good. It runs with a part of the map locked and so must not wait for a
// slot: fill may itself be waiting for the map. Who holds the slot has found a living value or is making one, and that
// one brings its own cleanup.
func (t *Table[K, V]) drop(s *slot[K, V]) {
	t.slots.Compute(s.key, func(cur *slot[K, V], loaded bool) (*slot[K, V], bool) {
		if !loaded || cur != s || !s.mu.TryLock() {
			return cur, !loaded
		}
		defer s.mu.Unlock()
		return cur, s.value.Value() == nil
	})
}

// Len returns the number of Keys that are held now. Collected values leave after a garbage collection.
func (t *Table[K, V]) Len() int { return t.slots.Size() }

// Fills returns the number of values made so far.
func (t *Table[K, V]) Fills() uint64 { return t.fills.Load() }
