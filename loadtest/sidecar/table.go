package sidecar

import (
	"hash/maphash"
	"runtime"
	"sync"
	"weak"

	"github.com/pilotd/pilotd/xdstype"
)

// Table holds every resource that some client has, every set of them, and the lists of names that clients subscribe to,
// each only once. What no client has any more leaves it by itself.
type Table struct {
	// Immutable after NewTable.
	seed  maphash.Seed
	marks Marks
	none  *set

	// buffers is memory for resources that arrive in several parts.
	buffers sync.Pool

	mu sync.RWMutex
	// Guarded by mu.
	resources map[digest]weak.Pointer[Resource]
	sets      map[uint64]weak.Pointer[set]
	lists     map[uint64]weak.Pointer[names]
	numbers   map[typedName]uint32
	serial    uint64
	// Marks found in the beginnings of big resources, by the hash of all blocks so far. The older half is dropped from
	// time to time.
	blocks, older map[uint64][]int
}

// digest identifies a resource by its bytes.
type digest struct {
	body, version uint64
	size          int
	form          form
}

// form says how a client interprets resources: delta for the incremental variant, deep to read the clusters in routes.
type form struct{ delta, deep bool }

type typedName struct {
	of   xdstype.Type
	name string
}

// NewTable returns an empty table.
func NewTable(m Marks) *Table {
	return &Table{seed: maphash.MakeSeed(), marks: m, none: &set{}, resources: map[digest]weak.Pointer[Resource]{},
		sets:  map[uint64]weak.Pointer[set]{},
		lists: map[uint64]weak.Pointer[names]{}, numbers: map[typedName]uint32{}, blocks: map[uint64][]int{},
		buffers: sync.Pool{New: func() any { return new([bigSize]byte) }}}
}

// Len returns the number of different resources that clients have, plus those that were superseded only just now.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.resources)
}

// resource returns the resource that b encodes, as an Any or as a Resource of the incremental variant; nil if its type
// is unknown.
func (t *Table) resource(b []byte, f form) (*Resource, error) {
	message, version := b, []byte(nil)
	if f.delta {
		var err error
		if message, version, err = unwrap(b); err != nil {
			return nil, err
		}
	}
	d := digest{body: maphash.Bytes(t.seed, message), version: maphash.Bytes(t.seed, version), size: len(b), form: f}
	if r := t.known(d); r != nil {
		return r, nil
	}
	r, err := t.scan(message, f.deep)
	if r == nil || err != nil {
		return nil, err
	}
	r.version = string(version)
	return t.add(d, r), nil
}

// known returns the resource with a digest, if some client has it.
func (t *Table) known(d digest) *Resource {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.resources[d].Value()
}

// add stores a resource, unless another goroutine has stored it meanwhile.
func (t *Table) add(d digest, r *Resource) *Resource {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.resources[d].Value(); known != nil {
		return known
	}
	t.serial++
	r.Size, r.body, r.id, r.number = d.size, d.body, mix(t.serial), t.number(r.Type, r.Name)
	for _, u := range r.uses {
		r.used = append(r.used, t.number(usedBy(r.Type), u))
	}
	t.resources[d] = weak.Make(r)
	runtime.AddCleanup(r, func(d digest) { drop(t, t.resources, d) }, d)
	return r
}

// drop removes an entry whose value was collected, unless it has a new value.
func drop[K comparable, V any](t *Table, m map[K]weak.Pointer[V], key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := m[key]; ok && p.Value() == nil {
		delete(m, key)
	}
}

// intern returns the value stored for a key, or makes it with build.
func intern[V any](t *Table, m map[uint64]weak.Pointer[V], key uint64, build func() *V) *V {
	t.mu.RLock()
	v := m[key].Value()
	t.mu.RUnlock()
	if v != nil {
		return v
	}
	made := build()
	t.mu.Lock()
	defer t.mu.Unlock()
	if v = m[key].Value(); v != nil {
		return v
	}
	m[key] = weak.Make(made)
	runtime.AddCleanup(made, func(key uint64) { drop(t, m, key) }, key)
	return made
}

// number returns the number of a name. The caller holds mu.
func (t *Table) number(of xdstype.Type, name string) uint32 {
	n, ok := t.numbers[typedName{of, name}]
	if !ok {
		n = uint32(len(t.numbers))
		t.numbers[typedName{of, name}] = n
	}
	return n
}

// numbered returns the numbers of those names that have one.
func (t *Table) numbered(of xdstype.Type, list []string) (out []uint32) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, name := range list {
		if n, ok := t.numbers[typedName{of, name}]; ok {
			out = append(out, n)
		}
	}
	return out
}

// mix spreads a number over all bits.
func mix(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n ^= n >> 32
	n *= 0xd6e8feb86659fd93
	return n ^ n>>32
}
