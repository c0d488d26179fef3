package sidecar

import (
	"hash/maphash"
	"sync"
)

// Type is a type of resource.
type Type int

// The types that an Envoy asks for, in the order in which it does.
const (
	Cluster Type = iota
	Endpoint
	Listener
	Route
	Types int = iota
)

func (t Type) String() string { return [...]string{"CDS", "EDS", "LDS", "RDS"}[t] }

// URL is the type's name on the wire.
func (t Type) URL() string {
	return "type.googleapis.com/envoy.config." + [...]string{"cluster.v3.Cluster", "endpoint.v3.ClusterLoadAssignment",
		"listener.v3.Listener", "route.v3.RouteConfiguration"}[t]
}

func typeOf(url []byte) (Type, bool) {
	for t := range Type(Types) {
		if string(url) == t.URL() {
			return t, true
		}
	}
	return 0, false
}

// Resource is a resource that some client has got. Immutable.
type Resource struct {
	Type Type
	Name string
	// Mark is the number of the change that the resource tells of, by what Marks look for; 0 if it tells of none.
	Mark int
	Size int

	number  uint32 // of the name: sets are sorted by it
	body    uint64 // hash of the resource alone, without a version
	version string // in the incremental protocol
	uses    []string
}

// Marks are what changes leave in resources: a text followed by the number of the change.
type Marks struct {
	// Endpoint precedes two bytes of an address, as in 198.18.101.107 for change 163.
	Endpoint string
	// Route precedes the number in a path.
	Route string
}

// Table holds every resource that any client has got, and the lists of names that they subscribe to, once.
type Table struct {
	// Immutable after NewTable.
	seed  maphash.Seed
	marks Marks

	mu sync.RWMutex
	// Guarded by mu.
	resources map[digest]*Resource
	numbers   map[typedName]uint32
	lists     map[uint64]*names
}

// digest tells resources apart as they came.
type digest struct {
	hash  uint64
	size  int
	delta bool
}

type typedName struct {
	of   Type
	name string
}

// NewTable is an empty table.
func NewTable(m Marks) *Table {
	return &Table{seed: maphash.MakeSeed(), marks: m, resources: map[digest]*Resource{}, numbers: map[typedName]uint32{}, lists: map[uint64]*names{}}
}

// Len is the number of different resources so far.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.resources)
}

// resource is the one that b says: an Any, or a Resource of the incremental protocol. nil is one of a type that is not known.
func (t *Table) resource(b []byte, delta bool) (*Resource, error) {
	d := digest{maphash.Bytes(t.seed, b), len(b), delta}
	t.mu.RLock()
	r, ok := t.resources[d]
	t.mu.RUnlock()
	if ok {
		return r, nil
	}
	r, err := t.scan(b, delta)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.resources[d]; ok {
		return known, nil
	}
	if r != nil {
		r.number = t.number(r.Type, r.Name)
	}
	t.resources[d] = r
	return r, nil
}

// number of a name. The caller holds mu.
func (t *Table) number(of Type, name string) uint32 {
	n, ok := t.numbers[typedName{of, name}]
	if !ok {
		n = uint32(len(t.numbers))
		t.numbers[typedName{of, name}] = n
	}
	return n
}
