package value

import "reflect"

// DestinationPolicy is what a policy object says of the traffic to a host. It is neutral of the API that the object
// comes from. A slice without elements is nil.
type DestinationPolicy struct {
	// Host is a fully qualified name or a wildcard pattern.
	Host string
	// Workload are labels of the workloads of its own namespace that the policy is for; nil: it is for all clients.
	Workload Labels
	// ExportTo is as the user wrote it: whether two policies are merged depends on that.
	ExportTo []string
	// Policy is nil where only Subsets say something.
	Policy  *PortPolicies
	Subsets []*Subset
}

// Equal reports whether two policies say the same.
func (p *DestinationPolicy) Equal(o *DestinationPolicy) bool {
	return p == o || reflect.DeepEqual(p, o)
}

// Subset is a part of a service's endpoints, by their labels.
type Subset struct {
	Name   string
	Labels Labels
	// Policy is laid over that of the whole; it may be nil.
	Policy *PortPolicies
}

// PortPolicies are a policy and, for some ports, one that counts in its place.
type PortPolicies struct {
	TrafficPolicy
	Ports []PortPolicy
}

// PortPolicy is the policy of one port. It has neither ProxyProtocol nor RetryBudget.
type PortPolicy struct {
	Port int
	TrafficPolicy
}

// All yields the policy and those of ports; none of nil.
func (p *PortPolicies) All(yield func(*TrafficPolicy) bool) {
	if p == nil || !yield(&p.TrafficPolicy) {
		return
	}
	for i := range p.Ports {
		if !yield(&p.Ports[i].TrafficPolicy) {
			return
		}
	}
}

// Own returns the policy that counts but for ports; the empty one of nil.
func (p *PortPolicies) Own() TrafficPolicy {
	if p == nil {
		return TrafficPolicy{}
	}
	return p.TrafficPolicy
}

// OfPort returns the policy of a port alone; nil if it has none.
func (p *PortPolicies) OfPort(port int) *TrafficPolicy {
	if p == nil {
		return nil
	}
	for i := range p.Ports {
		if p.Ports[i].Port == port {
			return &p.Ports[i].TrafficPolicy
		}
	}
	return nil
}

// TrafficPolicy says how clients call a service. What is nil is not said. Comparable.
type TrafficPolicy struct {
	Pool          *ConnectionPool
	Outlier       *OutlierDetection
	Balancer      *LoadBalancer
	TLS           *ClientTLS
	RetryBudget   *RetryBudget
	ProxyProtocol ProxyProtocol
}

// ProxyProtocol is the version of the PROXY protocol by which the client's address is told.
type ProxyProtocol uint8

// The versions.
const (
	NoProxyProtocol ProxyProtocol = iota
	ProxyProtocolV1
	ProxyProtocolV2
)

// ConnectionPool limits connections and requests; a limit of 0 is none. Comparable.
type ConnectionPool struct {
	ConnectTimeout, MaxDuration Duration
	TCPIdle, HTTPIdle           Duration
	Keepalive                   Keepalive

	MaxConnections, MaxPendingRequests, MaxRequests, MaxRetries uint32
	MaxRequestsPerConnection, MaxConcurrentStreams              uint32

	// Pings keep connections of HTTP/2 alive, where Pinged.
	Pinged              bool
	PingEach, PingReply Duration

	// UseClientProtocol goes on with what the client speaks; Upgrade says whether HTTP/1 becomes HTTP/2, and is the
	// mesh's to say where it is unset.
	UseClientProtocol bool
	Upgrade           OptionalBool
}

// Keepalive is the keepalive of TCP; what is unset is the system's. Comparable.
type Keepalive struct {
	Set            bool
	Probes         uint32
	Time, Interval Duration
}

// OutlierDetection says when an endpoint is put aside. Comparable.
type OutlierDetection struct {
	Interval, BaseEjection               Duration
	Errors, GatewayErrors, LocalFailures Limit
	// SplitLocal counts failures to connect apart, by LocalFailures.
	SplitLocal         bool
	MaxEjectionPercent uint32
	MinHealthPercent   uint32
}

// Limit is a number that may be unset. Comparable.
type Limit struct {
	N   uint32
	Set bool
}

// LoadBalancer says how requests are spread over endpoints.
type LoadBalancer struct {
	Algorithm Algorithm
	// Hash binds requests to endpoints; nil where nothing does.
	Hash *ConsistentHash
	// Warmup is how new endpoints come into use; nil for at once.
	Warmup   *Warmup
	Locality *LocalityBalancing
}

// Algorithm is a way to choose an endpoint.
type Algorithm uint8

// The algorithms. Passthrough is none: connections go where they were made to.
const (
	LeastRequest Algorithm = iota
	RoundRobin
	Random
	PassThrough
)

// Warmup is how new endpoints come into use. Comparable.
type Warmup struct {
	Window Duration
	// Gradual: Aggression and MinPercent say how their share grows.
	Gradual                bool
	Aggression, MinPercent float64
}

// ConsistentHash binds requests to endpoints by a part of the request.
type ConsistentHash struct {
	By HashSource
	// Name is that of the header, the cookie or the parameter.
	Name string
	// Address is whether HashAddress is on.
	Address bool
	// TTL, Path and Attributes are the cookie's.
	TTL        Duration
	Path       string
	Attributes []Header

	// Maglev is the algorithm, else it is a ring. Size is of its table; 0 is Envoy's own.
	Maglev bool
	Size   uint64
}

// HashSource is the part of a request that is hashed.
type HashSource uint8

// The parts.
const (
	HashNothing HashSource = iota
	HashHeader
	HashCookie
	HashAddress
	HashParameter
)

// LocalityBalancing says how localities share traffic.
type LocalityBalancing struct {
	Enabled    OptionalBool
	Distribute []*Distribution
	Failover   []Failover
	// Priority are labels by which endpoints rank.
	Priority []string
}

// Distribution are the shares of localities for clients in a locality.
type Distribution struct {
	From string
	To   map[string]uint32
}

// Failover is the region that takes over from another.
type Failover struct{ From, To string }

// ClientTLS is the TLS that a client begins.
type ClientTLS struct {
	Mode TLSMode
	SNI  string
	// Names are those that the server's certificate may have.
	Names []string
	// Credential names a secret of the control plane; otherwise the certificates are files.
	Credential                  string
	Certificate, Key, Root, CRL string
	SkipVerify                  bool
}

// TLSMode is a kind of TLS.
type TLSMode uint8

// The kinds of TLS. MeshTLS is mutual TLS with the workloads' own certificates.
const (
	NoTLS TLSMode = iota
	SimpleTLS
	MutualTLS
	MeshTLS
	OptionalMutualTLS // of servers
	PassthroughTLS    // of servers
)

// RetryBudget limits retries to a part of what is under way. Comparable.
type RetryBudget struct {
	Percent  float64
	Min      uint32
	Interval Duration
}
