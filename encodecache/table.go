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

// Table makes the Fragment of each Key once and finds it again while anyone holds it.
type Table[K comparable] struct {
	// Immutable after NewTable.
	encode func(K) []byte

	slots *xsync.MapOf[K, *slot]
	// fills counts the encodings, for metrics and tests.
	fills atomic.Uint64
}

// slot is the place of one Key; it leaves the table when its Fragment is collected.
type slot struct {
	// Guarded by mu: the first caller fills while others wait.
	mu   sync.Mutex
	frag weak.Pointer[Fragment]
}

// NewTable makes a Table whose Fragments are made by encode, a pure function of the Key.
func NewTable[K comparable](encode func(K) []byte) *Table[K] {
	return &Table[K]{encode: encode, slots: xsync.NewMapOf[K, *slot]()}
}

// Get is the Fragment of k, encoded now if nobody holds it yet.
func (t *Table[K]) Get(k K) *Fragment {
	for {
		s, _ := t.slots.LoadOrCompute(k, func() *slot { return new(slot) })
		s.mu.Lock()
		if f := s.frag.Value(); f != nil {
			s.mu.Unlock()
			return f
		}
		if cur, ok := t.slots.Load(k); !ok || cur != s { // dropped between Load and Lock
			s.mu.Unlock()
			continue
		}
		f := NewFragment(t.encode(k))
		t.fills.Add(1)
		s.frag = weak.Make(f)
		runtime.AddCleanup(f, func(k K) { t.drop(k, s) }, k)
		s.mu.Unlock()
		return f
	}
}

// drop removes the slot of k if its Fragment is gone for good.
func (t *Table[K]) drop(k K, s *slot) {
	t.slots.Compute(k, func(cur *slot, loaded bool) (*slot, bool) {
		if !loaded || cur != s {
			return cur, !loaded
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return cur, s.frag.Value() == nil
	})
}

// Len is the number of Keys that are held now. Collected Fragments leave after a garbage collection.
func (t *Table[K]) Len() int { return t.slots.Size() }

// Fills is the number of encodings so far.
func (t *Table[K]) Fills() uint64 { return t.fills.Load() }
