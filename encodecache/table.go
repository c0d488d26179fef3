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
}

// NewFragment makes a Fragment of b, which the caller must not write again.
func NewFragment(b []byte) *Fragment {
	h := sha256.Sum256(b)
	return &Fragment{bytes: b, sum: Sum(h[:16])}
}

// Bytes are the encoded fields; read only.
func (f *Fragment) Bytes() []byte { return f.bytes }

// Sum is the hash of the bytes.
func (f *Fragment) Sum() Sum { return f.sum }

// Table makes the V (a Fragment, an Entry) of each Key once and finds it again while anyone holds it.
type Table[K comparable, V any] struct {
	// Immutable after NewTable.
	fill func(K) *V

	slots *xsync.MapOf[K, *slot[V]]
	// fills counts the calls of fill, for metrics and tests.
	fills atomic.Uint64
}

// slot is the place of one Key; it leaves the table when its value is collected.
type slot[V any] struct {
	// Guarded by mu: the first caller fills while others wait.
	mu    sync.Mutex
	value weak.Pointer[V]
}

// NewTable makes a Table whose values are made by fill, a pure function of the Key.
func NewTable[K comparable, V any](fill func(K) *V) *Table[K, V] {
	return &Table[K, V]{fill: fill, slots: xsync.NewMapOf[K, *slot[V]]()}
}

// Get is the value of k, made now if nobody holds it yet.
func (t *Table[K, V]) Get(k K) *V {
	for {
		s, _ := t.slots.LoadOrCompute(k, func() *slot[V] { return new(slot[V]) })
		if v := t.getFrom(s, k); v != nil {
			return v
		}
	}
}

// getFrom is the value of k out of its slot, or nil if the slot left the table before it could be locked.
func (t *Table[K, V]) getFrom(s *slot[V], k K) *V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.value.Value(); v != nil {
		return v
	}
	if cur, ok := t.slots.Load(k); !ok || cur != s {
		return nil
	}
	v := t.fill(k)
	t.fills.Add(1)
	s.value = weak.Make(v)
	runtime.AddCleanup(v, func(k K) { t.drop(k, s) }, k)
	return v
}

// drop removes the slot of k if its value is gone for good. It runs with a part of the map locked and so must not wait for a slot: fill may
// itself be waiting for the map. Who holds the slot has found a living value or is making one, and that one brings its own cleanup.
func (t *Table[K, V]) drop(k K, s *slot[V]) {
	t.slots.Compute(k, func(cur *slot[V], loaded bool) (*slot[V], bool) {
		if !loaded || cur != s || !s.mu.TryLock() {
			return cur, !loaded
		}
		defer s.mu.Unlock()
		return cur, s.value.Value() == nil
	})
}

// Len is the number of Keys that are held now. Collected values leave after a garbage collection.
func (t *Table[K, V]) Len() int { return t.slots.Size() }

// Fills is the number of values made so far.
func (t *Table[K, V]) Fills() uint64 { return t.fills.Load() }
