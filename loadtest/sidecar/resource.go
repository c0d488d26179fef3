package sidecar

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
	return [...]string{"type.googleapis.com/envoy.config.cluster.v3.Cluster",
		"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
		"type.googleapis.com/envoy.config.listener.v3.Listener",
		"type.googleapis.com/envoy.config.route.v3.RouteConfiguration"}[t]
}

func typeOf(url []byte) (Type, bool) {
	for t := range Type(Types) {
		if string(url) == t.URL() {
			return t, true
		}
	}
	return 0, false
}

// uses is the type of what resources of type t use.
func (t Type) uses() Type { return [...]Type{Endpoint, Endpoint, Route, Cluster}[t] }

// Resource is a resource that some client has. Immutable.
type Resource struct {
	Type Type
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
func (m Marks) in(of Type, b []byte, limit int, known []int) []int {
	switch of {
	case Endpoint:
		return find(b, m.Endpoint, limit, known, address)
	case Route:
		return find(b, m.Route, limit, known, func(b []byte) (int, bool) {
			n, length := digits(b)
			return n,
				length > 0
		})
	}
	return known
}
