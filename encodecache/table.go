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

// Fragment is a sequence of encoded protobuf fields. Immutable.
type Fragment struct {
	bytes []byte
	sum   Sum
	from  origin
}

// NewFragment returns a Fragment of b, which the caller must not write again.
func NewFragment(b []byte) *Fragment {
	h := sha256.Sum256(b)
	return &Fragment{bytes: b, sum: Sum(h[:16])}
}

// Bytes returns the encoded fields; read only.
func (f *Fragment) Bytes() []byte { return f.bytes }

// Sum returns the hash of the bytes.
func (f *Fragment) Sum() Sum { return f.sum }

// Origin returns the Key from which a Table made the Fragment, or the key given to NewFragmentFrom; nil for all others.
func (f *Fragment) Origin() any { return f.from.key() }

// NewFragmentFrom returns a Fragment of b, which the caller must not write again, whose Origin is key. It is for
// Fragments that are in no Table. key should be a pointer to something that exists anyway, to save memory.
func NewFragmentFrom(b []byte, key any) *Fragment {
	f := NewFragment(b)
	f.from.of = key
	return f
}

// Table makes the value V (a Fragment, an Entry, a Template) of each Key once, and returns the same one for as long as
// it is in use. A Fragment or an Entry remembers its Key: see Fragment.Origin.
type Table[K comparable, V any] struct {
	// Immutable after NewTable.
	fill func(K) *V

	slots *xsync.MapOf[K, *slot[K, V]]
	// fills counts the calls of fill, for metrics and tests.
	fills atomic.Uint64
}

// slot is the place of one Key. It leaves the Table when its value is collected. It refers to the value by a weak
// pointer, and the value refers to it.
type slot[K comparable, V any] struct {
	// Immutable.
	key K

	// Guarded by mu: the first caller makes the value while others wait.
	mu    sync.Mutex
	value weak.Pointer[V]
}

// NewTable returns a Table whose values fill makes. fill must be a pure function of the Key and return a new value each
// time.
func NewTable[K comparable, V any](fill func(K) *V) *Table[K, V] {
	return &Table[K, V]{fill: fill, slots: xsync.NewMapOf[K, *slot[K, V]]()}
}

// Get returns the value of k. If no value of k is in use, it makes one.
func (t *Table[K, V]) Get(k K) *V {
	for {
		s, _ := t.slots.LoadOrCompute(k, func() *slot[K, V] { return &slot[K, V]{key: k} })
		if v := t.getFrom(s); v != nil {
			return v
		}
	}
}

// getFrom returns the value of a slot, or nil if the slot left the Table before it could be locked.
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

// drop removes a slot whose value was collected. It runs with a part of the map locked, so it must not wait for the
// slot's lock: fill, under that lock, may be waiting for the map. If another goroutine holds the lock, it has found a
// living value or is making a new one, which has a cleanup of its own.
func (t *Table[K, V]) drop(s *slot[K, V]) {
	t.slots.Compute(s.key, func(cur *slot[K, V], loaded bool) (*slot[K, V], bool) {
		if !loaded || cur != s || !s.mu.TryLock() {
			return cur, !loaded
		}
		defer s.mu.Unlock()
		return cur, s.value.Value() == nil
	})
}

// Len returns the number of Keys in the Table. A Key leaves it some time after the collection of its value.
func (t *Table[K, V]) Len() int { return t.slots.Size() }

// Fills returns the number of values made so far.
func (t *Table[K, V]) Fills() uint64 { return t.fills.Load() }
