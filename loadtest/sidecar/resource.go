package sidecar

import "github.com/pilotd/pilotd/xdstype"

// Types returns the types that simulated clients ask for. There may be others.
func Types() []xdstype.Type {
	return []xdstype.Type{xdstype.Cluster, xdstype.Endpoint, xdstype.Listener, xdstype.Route}
}

// typeOf returns the type with that URL. ok is false if clients do not ask for it.
func typeOf(url []byte) (xdstype.Type, bool) {
	for _, t := range Types() {
		if string(url) == t.URL() {
			return t, true
		}
	}
	return xdstype.None, false
}

// usedBy returns the type of the resources that resources of type t refer to.
func usedBy(t xdstype.Type) xdstype.Type {
	switch t {
	case xdstype.Listener:
		return xdstype.Route
	case xdstype.Route:
		return xdstype.Cluster
	}
	return xdstype.Endpoint
}

// Resource is a resource that some client has. Immutable.
type Resource struct {
	Type xdstype.Type
	Name string
	// Marks are the numbers of the changes that the resource carries.
	Marks []int
	Size  int

	number  uint32 // number of its name, by which sets are sorted
	id      uint64 // unique for each resource
	body    uint64 // hash of the resource alone, without its version
	version string // only in the incremental variant
	uses    []string
	used    []uint32 // numbers of the names in uses
}

// Marks describes the marks of changes in resources: a text followed by the number of the change.
type Marks struct {
	// Endpoint is the text before the two bytes of an address that encode the number, as in 198.18.101.107 for change
	// 163.
	Endpoint string
	// Route is the text before the number in a path.
	Route string
}

// in finds the marks in bytes of a resource that begin before limit, and appends them to known.
func (m Marks) in(of xdstype.Type, b []byte, limit int, known []int) []int {
	switch of {
	case xdstype.Endpoint:
		return mark{m.Endpoint, address}.find(b, limit, known)
	case xdstype.Route:
		return mark{m.Route, func(b []byte) (int, bool) {
			n, length := digits(b)
			return n, length > 0
		}}.find(b, limit, known)
	}
	return known
}
