package mesh

import "fmt"

// Shape is the size and kind of a mesh. Shares are parts of the Services, from 0 to 1.
type Shape struct {
	// About says in a line what the shape is good for.
	About string `json:"about,omitempty"`
	Seed  uint64 `json:"seed"`
	// Namespaces hold the Services in turn; Services have Pods each.
	Namespaces int `json:"namespaces"`
	Services   int `json:"services"`
	Pods       int `json:"pods"`
	// Large are services of many pods. They come first: edits of "the first service" are of one of them.
	Large Group `json:"large,omitzero"`
	// Headless are services without an address of their own.
	Headless Group `json:"headless,omitzero"`
	// TCP have a port for a protocol that is not HTTP, GRPC one for gRPC. Every service has port 80 for HTTP.
	TCP  float64 `json:"tcp,omitempty"`
	GRPC float64 `json:"grpc,omitempty"`
	// VirtualServices have one, with two routes; the Services with DestinationRules have subsets, one for each version.
	VirtualServices  float64 `json:"virtualServices,omitempty"`
	DestinationRules float64 `json:"destinationRules,omitempty"`
	// OutlierDetection is the share of the DestinationRules that have it: endpoints depend on the client's locality
	// then.
	OutlierDetection float64        `json:"outlierDetection,omitempty"`
	Sidecars         Sidecars       `json:"sidecars,omitzero"`
	Gateway          Gateways       `json:"gateways,omitzero"`
	ServiceEntries   ServiceEntries `json:"serviceEntries,omitzero"`
	// Entries is a mesh without Kubernetes: every service is a ServiceEntry, every pod a WorkloadEntry.
	Entries bool `json:"entries,omitempty"`
	// Extensions is how many extensions a proxy lists, as upstream Envoy does; 0 is one that lists none, as Istio's
	// proxy.
	Extensions int `json:"extensions,omitempty"`
}

// Group is a number of services with Pods each.
type Group struct {
	Services int `json:"services"`
	Pods     int `json:"pods"`
}

// Sidecars are the objects of that name.
type Sidecars struct {
	// Namespaces is how many namespaces have one for all their workloads.
	Namespaces int `json:"namespaces,omitempty"`
	// Workloads is how many select the workloads of one version of one service.
	Workloads int `json:"workloads,omitempty"`
	// Imports is how many services of other namespaces each of them lets in.
	Imports int `json:"imports,omitempty"`
}

// Gateways are deployments of gateways, which share Hosts host names with Routes routes in all, in one VirtualService a
// host.
type Gateways struct {
	Deployments int `json:"deployments"`
	Pods        int `json:"pods"`
	Hosts       int `json:"hosts"`
	Routes      int `json:"routes"`
}

// ServiceEntries are services outside the mesh.
type ServiceEntries struct {
	// DNS are found by name, Static have Endpoints each in the object, Workloads as many WorkloadEntries each.
	DNS       int `json:"dns,omitempty"`
	Static    int `json:"static,omitempty"`
	Workloads int `json:"workloads,omitempty"`
	Endpoints int `json:"endpoints,omitempty"`
}

// Usual returns the shape that docs/benchmarks.md measures: services × 2 pods over ten namespaces.
func Usual(services int) Shape {
	return Shape{Seed: 1, Namespaces: 10, Services: services, Pods: 2, TCP: 0.1, VirtualServices: 0.2,
		DestinationRules: 0.2}
}

// problem says what is wrong with a field of a shape, and what was expected; an empty field is none.
type problem struct{ field, expected string }

// check finds the first thing that no mesh can be made of.
func (s *Shape) check() problem {
	for _, n := range []struct {
		field    string
		n, least int
	}{
		{"namespaces", s.Namespaces, 1}, {"services", s.Services, 1}, {"pods", s.Pods, 1},
		{"large.services", s.Large.Services, 0}, {"large.pods", s.Large.Pods, min(s.Large.Services, 1)},
		{"headless.services", s.Headless.Services, 0}, {"headless.pods", s.Headless.Pods, min(s.Headless.Services, 1)},
		{"sidecars.namespaces", s.Sidecars.Namespaces, 0}, {"sidecars.workloads", s.Sidecars.Workloads, 0},
		{"sidecars.imports", s.Sidecars.Imports, 0},
		{"gateways.deployments", s.Gateway.Deployments, min(s.Gateway.Hosts+s.Gateway.Routes, 1)},
		{"gateways.pods", s.Gateway.Pods, min(s.Gateway.Deployments, 1)},
		{"gateways.hosts", s.Gateway.Hosts, min(s.Gateway.Routes, 1)},
		{"gateways.routes", s.Gateway.Routes, s.Gateway.Hosts},
		{"serviceEntries.dns", s.ServiceEntries.DNS, 0}, {"serviceEntries.static", s.ServiceEntries.Static, 0},
		{"serviceEntries.workloads", s.ServiceEntries.Workloads, 0},
		{"serviceEntries.endpoints", s.ServiceEntries.Endpoints, min(s.ServiceEntries.Static+s.ServiceEntries.Workloads,
			1)},
		{"extensions", s.Extensions, 0},
	} {
		if n.n < n.least {
			return problem{n.field, atLeast(n.least)}
		}
	}
	for _, share := range []struct {
		field string
		of    float64
	}{
		{"tcp", s.TCP}, {"grpc", s.GRPC}, {"virtualServices", s.VirtualServices},
		{"destinationRules", s.DestinationRules},
		{"outlierDetection", s.OutlierDetection},
	} {
		if !(share.of >= 0 && share.of <= 1) {
			return problem{share.field, "a share from 0 to 1"}
		}
	}
	return s.limits()
}

// limits finds what there are not enough addresses, namespaces or workloads for.
func (s *Shape) limits() problem {
	m := New(*s)
	switch e := s.ServiceEntries; {
	case m.Workloads()+m.Gateways() > maxAddresses:
		return problem{"pods", atMost(maxAddresses) + " workloads in all"}
	case m.services()+s.Gateway.Deployments+e.DNS+e.Static+e.Workloads > maxClusterIPs:
		return problem{"services", atMost(maxClusterIPs) + " in all"}
	case (e.Static+e.Workloads)*e.Endpoints > maxExternal:
		return problem{"serviceEntries.endpoints", atMost(maxExternal) + " in all"}
	case s.Sidecars.Namespaces > s.Namespaces:
		return problem{"sidecars.namespaces", atMost(s.Namespaces) + ", the number of namespaces"}
	case s.Sidecars.Workloads > m.services()*min(2, s.Pods):
		return problem{"sidecars.workloads",
			atMost(m.services()*min(2, s.Pods)) + ", the number of services and versions"}
	}
	return problem{}
}

func atLeast(n int) string { return fmt.Sprintf("at least %d", n) }
func atMost(n int) string  { return fmt.Sprintf("at most %d", n) }
