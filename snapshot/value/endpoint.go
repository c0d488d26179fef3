package value

import (
	"strconv"
	"unique"
)

// Health is what a client should think of an endpoint.
type Health uint8

// Health states. Terminating endpoints are not stored at all unless they serve persistent sessions (Draining).
const (
	Healthy Health = iota
	Unhealthy
	Draining
	Terminating
	// HealthUnknown is that of inline endpoints of a ServiceEntry and of WorkloadEntries, of which nobody reports
	// health: no health_status is sent.
	HealthUnknown

	// Healths is how many there are.
	Healths = 5
)

// String returns the name that istiod's endpointz page gives the state. A value that has no name says its number: a
// page must not panic.
func (h Health) String() string {
	names := [Healths]string{"HEALTHY", "UNHEALTHY", "DRAINING", "TERMINATING", "UNKNOWN"}
	if int(h) < len(names) {
		return names[h]
	}
	return "HEALTH_" + strconv.Itoa(int(h))
}

// Locality is where an endpoint or proxy runs. Comparable.
type Locality struct {
	Region, Zone, SubZone string
}

func (l Locality) String() string {
	if l == (Locality{}) {
		return ""
	}
	return l.Region + "/" + l.Zone + "/" + l.SubZone
}

// Identity is what the workload behind an endpoint is, shared by all endpoints of one workload: interned with
// unique.Handle. Labels are encoded by LabelsKey so that the struct stays comparable.
type Identity struct {
	Namespace string
	Workload  string // name of the workload (Deployment …) as telemetry reports it
	// ServiceAccount is "TRUSTDOMAIN/ns/NAMESPACE/sa/NAME", as in Projection.ServiceAccounts; empty when unknown.
	ServiceAccount string
	Cluster        string
	Network        string
	// TLSMode is "istio" when the endpoint has a sidecar that speaks mutual TLS, else "disabled" or "".
	TLSMode string
	// LabelsKey is LabelsKey(labels).
	LabelsKey string
}

// Endpoint is one address of one service. Compared by content when an endpoint set is replaced.
type Endpoint struct {
	// Addresses are an IP, a DNS name (DNS services), or a "unix://" path. A pod of both families is two endpoints;
	// more than one address here would be one endpoint that is reached at any of them.
	Addresses []string
	// Ports maps the service's port name to the endpoint's port, sorted by name. A port that is missing is not served.
	Ports    []EndpointPort
	Identity unique.Handle[Identity]
	// Labels are the workload's, with the topology labels that istiod adds: topology.kubernetes.io/region and zone,
	// topology.istio.io/subzone, cluster and network, kubernetes.io/hostname. Nil for the host name of a DNS service.
	Labels   Labels
	Locality Locality
	Health   Health
	// Weight is the load balancing weight, at least 1.
	Weight uint32
	// Node is the Kubernetes node, for node-local policies.
	Node string
	// Pod is the pod's namespace/name, or the WorkloadEntry's; empty when unknown.
	Pod string
	// HostName and SubDomain give a pod of a headless service its own name.
	HostName, SubDomain string
}

// Serves reports whether the endpoint has a port of a service.
func (e *Endpoint) Serves(p *Port) bool {
	for _, ep := range e.Ports {
		if ep.Name == p.Name {
			return true
		}
	}
	return false
}

// HasOwnLabels reports whether somebody has given the workload labels: those that say where it is are added for all.
func (e *Endpoint) HasOwnLabels() bool {
	for name := range e.Labels {
		switch name {
		case "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "kubernetes.io/hostname",
			"topology.istio.io/subzone", "topology.istio.io/cluster", "topology.istio.io/network":
		default:
			return true
		}
	}
	return false
}

// EndpointPort is the port at which an endpoint serves the service port of that name.
type EndpointPort struct {
	Name string
	Port uint32
}

// Projection is what clusters and listeners depend on of a service's endpoints. It is kept in the Snapshot; ingest
// keeps the old pointer when nothing in it changed.
type Projection struct {
	// Any is whether there is any endpoint.
	Any bool
	// ServiceAccounts are the SPIFFE identities of the endpoints, sorted, without the "spiffe://" that generators add.
	ServiceAccounts []string
	// MutualTLS are the names of the ports all of whose endpoints speak mutual TLS, sorted.
	MutualTLS []string
	// Inline are the endpoints themselves, for services whose clusters carry them (DNS, static) or whose listeners bind
	// their addresses (headless, passed through), in the order in which they are served; nil for all others.
	Inline []*Endpoint
}

// Workload is a pod or WorkloadEntry as the home of a proxy: what a proxy's own (inbound) configuration depends on.
type Workload struct {
	Namespace, Name string
	Addresses       []string
	// Labels are the object's own, without the topology labels of Endpoint.Labels.
	Labels   Labels
	Locality Locality
	Node     string
	// ServiceAccount is the bare name.
	ServiceAccount string
	Network        string
	// NamedPorts maps container port names to numbers, of a pod.
	NamedPorts map[string]int
	// Ports maps service port names to numbers, of a WorkloadEntry.
	Ports map[string]uint32
	// Pod is false for a WorkloadEntry.
	Pod bool
}
