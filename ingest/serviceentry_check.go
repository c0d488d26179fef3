package ingest

import (
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func checkServiceEntry(o *clientnet.ServiceEntry) *problem {
	c, spec := &check{}, &o.Spec
	c.that(len(spec.Hosts) > 0, "spec.hosts", "expected at least one host")
	c.entrySize(spec)
	for i, h := range spec.Hosts {
		c.that(strings.TrimSuffix(h, ".") != "*", item("spec.hosts", i),
			`expected a host, "*" alone would be everything`)
		c.host(item("spec.hosts", i), h, true)
	}
	c.that(spec.WorkloadSelector == nil || len(spec.Endpoints) == 0, "spec.endpoints",
		"expected only one of endpoints and workloadSelector")
	c.labels("spec.workloadSelector.labels", spec.GetWorkloadSelector().GetLabels())
	c.entryAddresses(spec)
	c.entryPorts(spec.Ports)
	c.entryServerNames(spec)
	c.resolution(spec)
	names := set[string]{}
	for _, p := range spec.Ports {
		names.add(p.GetName())
	}
	for i, e := range spec.Endpoints {
		c.entryEndpoint(item("spec.endpoints", i), e)
		for _, name := range sortedNames(e.GetPorts()) {
			_, known := names[name]
			c.that(known, item("spec.endpoints", i)+".ports."+name, "expected the name of a port of this ServiceEntry")
		}
	}
	c.exportTo(spec.ExportTo, o.Namespace, true)
	return c.first
}

func (c *check) entryAddresses(spec *networking.ServiceEntry) {
	for i, a := range spec.Addresses {
		at := item("spec.addresses", i)
		c.subnet(at, a)
		p, err := netip.ParsePrefix(a)
		isRange := err == nil && !p.IsSingleIP()
		c.that(!isRange || spec.Resolution == networking.ServiceEntry_NONE ||
			spec.Resolution == networking.ServiceEntry_STATIC, at,
			"expected an address, a CIDR range is for resolution NONE and STATIC only")
	}
}

// entryServerNames checks the hosts of an entry with a TLS port, where listeners select the service of a connection by
// its server name.
func (c *check) entryServerNames(spec *networking.ServiceEntry) {
	if !slices.ContainsFunc(spec.Ports,
		func(p *networking.ServicePort) bool { return parseProtocol(p.GetProtocol()).IsTLS() }) {
		return
	}
	for i, h := range spec.Hosts {
		c.serverName(item("spec.hosts", i), h)
	}
}

func (c *check) entryPorts(ports []*networking.ServicePort) {
	names, numbers := set[string]{}, set[uint32]{}
	for i, p := range ports {
		at := item("spec.ports", i)
		c.port(at+".number", p.GetNumber())
		c.optionalPort(at+".targetPort", p.GetTargetPort())
		c.that(p.GetName() != "" && len(p.GetName()) <= 253, at+".name", "expected a name")
		if p.GetProtocol() != "" {
			c.protocol(at+".protocol", p.GetProtocol())
		}
		c.that(firstTime(names, p.GetName()), at+".name", "%q is defined twice", p.GetName())
		c.that(firstTime(numbers, p.GetNumber()), at+".number", "%d is defined twice", p.GetNumber())
	}
}

// resolution checks that each endpoint has a kind of address that the resolution allows.
func (c *check) resolution(spec *networking.ServiceEntry) {
	wildcard := slices.ContainsFunc(spec.Hosts, func(h string) bool { return strings.HasPrefix(h, "*") })
	switch spec.Resolution {
	case networking.ServiceEntry_NONE:
		c.that(len(spec.Endpoints) == 0, "spec.endpoints", "expected none for resolution NONE")
	case networking.ServiceEntry_STATIC:
		for i, e := range spec.Endpoints {
			c.that(usable(entryResolution(spec), e.GetAddress()) || e.GetAddress() == "" && e.GetNetwork() != "",
				item("spec.endpoints", i)+".address",
				"expected an IP address or unix:// for resolution STATIC, got %q", e.GetAddress())
		}
	case networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN:
		c.that(len(spec.Endpoints) > 0 || spec.WorkloadSelector != nil || !wildcard, "spec.hosts",
			"expected no wildcard where the hosts themselves are resolved")
		c.that(spec.Resolution == networking.ServiceEntry_DNS || len(spec.Endpoints) <= 1, "spec.endpoints",
			"expected at most one for resolution DNS_ROUND_ROBIN")
		for i, e := range spec.Endpoints {
			c.that(usable(entryResolution(spec), e.GetAddress()) || e.GetAddress() == "" && e.GetNetwork() != "",
				item("spec.endpoints", i)+".address",
				"expected a host name or an IP address, got %q", e.GetAddress())
		}
	}
}

// usable reports whether a service with that resolution may have an endpoint at address. A proxy refuses all endpoints
// of a cluster if one is a host name where names are not resolved, or a socket where they are.
func usable(r value.Resolution, address string) bool {
	a, err := netip.ParseAddr(address)
	if a.Zone() != "" {
		return false
	}
	switch r {
	case value.ClientSideLB:
		return err == nil || strings.HasPrefix(address, "unix://")
	case value.DNSLB, value.DNSRoundRobin:
		return err == nil || isDomain(address)
	}
	return true
}

func (c *check) entryEndpoint(at string, e *networking.WorkloadEntry) {
	path, socket := strings.CutPrefix(e.GetAddress(), "unix://")
	switch {
	case socket:
		c.socket(at+".address", path)
		c.that(len(e.GetPorts()) == 0, at+".ports", "expected none for a socket")
	case e.GetAddress() == "":
		c.that(e.GetNetwork() != "", at+".address",
			"expected an address; only one that is reached through a network's gateway needs none")
	default:
		c.routedHost(at+".address", e.GetAddress())
		c.that(e.GetAddress() != "*" && !strings.HasPrefix(e.GetAddress(), "*"), at+".address",
			"expected an address or a host name, got %q", e.GetAddress())
	}
	for _, name := range sortedNames(e.GetPorts()) {
		c.port(at+".ports."+name, e.GetPorts()[name])
	}
	c.labels(at+".labels", e.GetLabels())
}

func checkWorkloadEntry(o *clientnet.WorkloadEntry) *problem {
	c := &check{}
	c.entryEndpoint("spec", &o.Spec)
	return c.first
}
