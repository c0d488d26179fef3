package value

import (
	"cmp"
	"strings"
)

// Protocol is the application protocol of a port as istio names it.
type Protocol string

// Protocols. Auto is an undeclared one: it is sniffed.
const (
	HTTP    Protocol = "HTTP"
	HTTP2   Protocol = "HTTP2"
	GRPC    Protocol = "GRPC"
	GRPCWeb Protocol = "GRPC-Web"
	HTTPS   Protocol = "HTTPS"
	TCP     Protocol = "TCP"
	TLS     Protocol = "TLS"
	UDP     Protocol = "UDP"
	Mongo   Protocol = "Mongo"
	Redis   Protocol = "Redis"
	MySQL   Protocol = "MySQL"
	HBONE   Protocol = "HBONE"
	Auto    Protocol = "UnsupportedProtocol"
)

// IsHTTP reports whether requests of this protocol are routed as plain HTTP.
func (p Protocol) IsHTTP() bool {
	switch p {
	case HTTP, HTTP2, GRPC, GRPCWeb:
		return true
	}
	return false
}

// IsHTTP2 reports whether the protocol is carried over HTTP/2.
func (p Protocol) IsHTTP2() bool { return p == HTTP2 || p == GRPC || p == GRPCWeb }

// IsTLS reports whether connections start with a TLS handshake.
func (p Protocol) IsTLS() bool { return p == HTTPS || p == TLS }

// Inside returns the protocol of what TLS of this protocol carries.
func (p Protocol) Inside() Protocol {
	switch p {
	case HTTPS:
		return HTTP
	case TLS:
		return TCP
	}
	return p
}

// IsTCP reports whether connections are forwarded as bytes: everything that is neither HTTP, UDP nor sniffed.
func (p Protocol) IsTCP() bool { return !p.IsHTTP() && p != UDP && p != Auto }

// Resolution says how a service's name becomes addresses.
type Resolution uint8

// Resolutions.
const (
	// ClientSideLB: pilotd knows the endpoints (EDS).
	ClientSideLB Resolution = iota
	// DNSLB: the proxy resolves names and balances over all answers (STRICT_DNS).
	DNSLB
	// DNSRoundRobin: the proxy resolves and uses one answer at a time (LOGICAL_DNS).
	DNSRoundRobin
	// Passthrough: the proxy forwards to the address that the application dialed (ORIGINAL_DST).
	Passthrough
	// Alias: an ExternalName Service; see Service.ExternalName.
	Alias
)

// Registry says where a service comes from.
type Registry uint8

// Registries.
const (
	RegistryKubernetes Registry = iota
	RegistryExternal            // ServiceEntry
)

// ServiceKey identifies a service: a host name may be defined in several namespaces.
type ServiceKey struct {
	Host      string
	Namespace string
}

func (k ServiceKey) String() string { return k.Host + "/" + k.Namespace }

// Service is a Kubernetes Service, or one host of a ServiceEntry.
type Service struct {
	ServiceKey
	// Name is the object's name (the ServiceEntry's host for external services, as istiod reports it in metadata).
	Name string
	// Object is where the service was read from. Joined are further objects that define the same host and gave it ports
	// or addresses, oldest first.
	Object   ObjectKey
	Joined   []ObjectKey
	Created  int64
	Registry Registry
	// Addresses are the virtual addresses, in the object's order: IPs, or CIDRs of a ServiceEntry, each in its one
	// canonical text (a CIDR that holds one address is that address). Empty for headless services and for
	// ServiceEntries without addresses.
	Addresses []string
	// AutoAddresses are the allocated addresses of a ServiceEntry's status for this host; used for DNS and VIP
	// listeners only.
	AutoAddresses []string
	Ports         []*Port
	Resolution    Resolution
	// External is MESH_EXTERNAL: its endpoints have no sidecar.
	External bool
	// Headless is a Kubernetes Service with clusterIP None.
	Headless bool
	// ExternalName is the target of an ExternalName Service; empty otherwise.
	ExternalName string
	Export       Visibility
	Labels       Labels
	// Selector selects the pods of a Kubernetes Service, or the workloads of a ServiceEntry; nil selects none.
	Selector Labels
	// TrafficDistribution is "", "PreferSameZone" (also for PreferClose) or "PreferSameNode".
	TrafficDistribution string
	// NodeLocal is internalTrafficPolicy: Local.
	NodeLocal bool
	// PublishNotReady is publishNotReadyAddresses.
	PublishNotReady bool
	// SubjectAltNames are those that annotations and subjectAltNames name, beyond the ones of the endpoints, sorted:
	// whole, as certificates have them, "spiffe://" included.
	SubjectAltNames []string
	// ExternalIPs are further addresses at which the service is reachable in the cluster.
	ExternalIPs []string
}

// Port is one port of a service. Never two of a service with the same number.
type Port struct {
	Name     string
	Number   int
	Protocol Protocol
	// TargetPort is the numeric target, 0 when it is named or not given.
	TargetPort int
	// TargetName is a named target port; empty otherwise.
	TargetName string
}

// EntryTarget returns the port at which a workload that a WorkloadEntry describes serves the port of a Kubernetes
// Service that selects it; 0 if it does not serve it. named are the entry's ports. A named target port is looked up
// there under its name and is served nowhere else; for a numbered one the entry may name another number under the
// service port's own name.
func (p *Port) EntryTarget(named map[string]uint32) uint32 {
	if p.TargetName != "" {
		return named[p.TargetName]
	}
	return cmp.Or(named[p.Name], uint32(cmp.Or(p.TargetPort, p.Number)))
}

// Wildcard reports whether the host is a pattern such as *.example.com.
func (s *Service) Wildcard() bool { return strings.HasPrefix(s.Host, "*") }

// ByMember reports whether a service has no address of its own and its connections go where they were made to.
func (s *Service) ByMember() bool {
	return len(s.Addresses) == 0 && (s.Headless || s.Resolution == Passthrough)
}

// PortByNumber returns the port with that number, or nil.
func (s *Service) PortByNumber(n int) *Port {
	for _, p := range s.Ports {
		if p.Number == n {
			return p
		}
	}
	return nil
}

// PortByName returns the port with that name, or nil.
func (s *Service) PortByName(name string) *Port {
	for _, p := range s.Ports {
		if p.Name == name {
			return p
		}
	}
	return nil
}
