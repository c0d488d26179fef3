package value

import "reflect"

// KindSidecar is Istio's Sidecar.
const KindSidecar Kind = "Sidecar.networking.istio.io"

// Sidecar is an object that says what the sidecars of workloads import and which ports they have.
type Sidecar struct {
	Meta
	SidecarSettings
}

// Selector returns the labels of the workloads that the Sidecar is for; nil for the whole namespace.
func (s *Sidecar) Selector() Labels { return s.Workload }

// Kind returns KindSidecar.
func (s *Sidecar) Kind() Kind { return KindSidecar }

// Object returns the key of the Sidecar object.
func (s *Sidecar) Object() ObjectKey { return s.Meta.Object(s.Kind()) }

// Equal reports whether two Sidecar objects are the same.
func (s *Sidecar) Equal(o *Sidecar) bool {
	return s == o || s.Meta == o.Meta && reflect.DeepEqual(s.SidecarSettings, o.SidecarSettings)
}

// SidecarSettings are what a Sidecar object says. A slice without elements is nil.
type SidecarSettings struct {
	// Workload are labels of the workloads; nil: all of the namespace.
	Workload Labels
	// Egress are the listeners for outbound traffic; nil: those of the mesh.
	Egress []*EgressListener
	// Ingress are the ports of the workload; nil: those that services declare.
	Ingress []*IngressListener
	// Outbound is what is done with traffic to unknown hosts; nil: what the mesh does.
	Outbound *SidecarOutbound
	// Pool limits the connections to all ports of the workload but those that have limits of their own; it may be nil.
	Pool *ConnectionPool
}

// PoolOf returns the limits of connections to a port of the workload; nil if it sets none.
func (s *SidecarSettings) PoolOf(port int) *ConnectionPool {
	for _, i := range s.Ingress {
		if i.Port.Number == port && i.Pool != nil {
			return i.Pool
		}
	}
	return s.Pool
}

// ListenerPort is the port of a listener that an object declares.
type ListenerPort struct {
	Number   int
	Name     string
	Protocol Protocol
}

// CaptureMode says how connections reach a listener of a sidecar.
type CaptureMode uint8

// The modes.
const (
	CaptureDefault CaptureMode = iota // as the proxy's own interception is
	CaptureIntercept
	CaptureNone // the listener binds its port
)

// EgressListener takes outbound traffic to what it imports.
type EgressListener struct {
	// Port is nil for all ports that no other listener has.
	Port    *ListenerPort
	Bind    string
	Capture CaptureMode
	// Hosts are "namespace/host" as users write them: "." is the namespace of the client, for that of the root
	// namespace holds in all; "~namespace/host" takes out of what the others import.
	Hosts []string
}

// IngressListener takes traffic to a port of the workload.
type IngressListener struct {
	Port    ListenerPort
	Bind    string
	Capture CaptureMode
	// Forward is "address:port" or "unix://path" of the application; empty for the address of the connection.
	Forward string
	Pool    *ConnectionPool
	// TLS is how the port terminates TLS where the mesh's own is switched off for it; nil if it does not.
	TLS *ServerTLS
}

// SidecarOutbound is what is done with traffic to unknown hosts.
type SidecarOutbound struct {
	Mode OutboundMode
	// Proxy is where it is sent; nil for where it was going.
	Proxy *Destination
}
