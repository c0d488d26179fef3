package sidecar

import "github.com/pilotd/pilotd/xdstype"

// Types returns the types that clients ask for, whatever others there are.
func Types() []xdstype.Type {
	return []xdstype.Type{xdstype.Cluster, xdstype.Endpoint, xdstype.Listener, xdstype.Route}
}

// typeOf returns the type with that URL, and reports whether it is one that sidecars ask for.
func typeOf(url []byte) (xdstype.Type, bool) {
	for _, t := range Types() {
		if string(url) == t.URL() {
			return t, true
		}
	}
	return xdstype.None, false
}

// usedBy returns the type of what resources of type t use.
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
	// Marks are the numbers of the changes that the resource tells of, by what Marks look for.
	Marks []int
	Size  int

	number  uint32 // of the name: sets are sorted by it
	id      uint64 // no two resources have the same
	body    uint64 // hash of the resource alone, without a version
	version string // in the incremental protocol
	uses    []string
	used    []uint32 // the numbers of uses
}

// Marks are what changes leave in resources: a text followed by the number of the change.
type Marks struct {
	// Endpoint precedes two bytes of an address, as in 198.18.101.107 for change 163.
	Endpoint string
	// Route precedes the number in a path.
	Route string
}

// in finds the marks in bytes of a resource, of those that begin before limit, and adds them to those that are known
// already.
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
