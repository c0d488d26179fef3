package ingest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func serviceEntryKind() Kind {
	k := custom(Kind{Name: value.KindServiceEntry, Plural: "serviceentries"},
		func(o *clientnet.ServiceEntry) Message { return &o.Spec }, checkServiceEntry)
	// The API server's allocator writes addresses there
	k.Status = func(o Object) Message { return &o.(*clientnet.ServiceEntry).Status }
	k.put = (*joiner).putServiceSource
	return k
}

// hostName returns a host name in the form that values use.
func hostName(h string) string { return strings.ToLower(strings.TrimSuffix(h, ".")) }

// externalService returns the service that a ServiceEntry defines for one of its hosts.
func (j *joiner) externalService(d *serviceSource, host value.ServiceKey) *value.Service {
	e, spec := d.entry, &d.entry.Spec
	out := &value.Service{
		ServiceKey: host, Name: host.Host, Object: d.key,
		Created: seconds(e.ObjectMeta), Registry: value.RegistryExternal,
		Addresses: entryAddresses(spec), Resolution: entryResolution(spec),
		External: spec.GetLocation() == networking.ServiceEntry_MESH_EXTERNAL,
		Export: value.NewVisibility(spec.GetExportTo(), defaultExport(j.config.GetDefaultServiceExportTo(), "~"),
			e.Namespace), Labels: e.Labels,
		Selector:            spec.GetWorkloadSelector().GetLabels(),
		TrafficDistribution: j.distribution(nil, e.Annotations, nameOf(d.key).space),
	}
	if len(spec.GetAddresses()) == 0 {
		out.AutoAddresses = autoAddresses(e, host.Host)
	}
	out.SubjectAltNames = slices.Sorted(slices.Values(spec.GetSubjectAltNames()))
	for _, p := range spec.GetPorts() {
		out.Ports = addPort(out.Ports, entryPort(p))
	}
	return out
}

func entryPort(p *networking.ServicePort) *value.Port {
	return &value.Port{Name: p.GetName(), Number: int(p.GetNumber()), Protocol: parseProtocol(p.GetProtocol()),
		TargetPort: int(p.GetTargetPort())}
}

// entryAddresses returns the addresses of a ServiceEntry without duplicates. A range of one address becomes that
// address.
func entryAddresses(spec *networking.ServiceEntry) []string {
	var out []string
	for _, a := range spec.GetAddresses() {
		if a = subnetOf(a); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

func entryResolution(spec *networking.ServiceEntry) value.Resolution {
	switch spec.GetResolution() {
	case networking.ServiceEntry_STATIC:
		return value.ClientSideLB
	case networking.ServiceEntry_DNS:
		return value.DNSLB
	case networking.ServiceEntry_DNS_ROUND_ROBIN:
		return value.DNSRoundRobin
	}
	return value.Passthrough
}

func autoAddresses(e *clientnet.ServiceEntry, host string) []string {
	var out []string
	for _, a := range e.Status.GetAddresses() {
		if h := a.GetHost(); h == "" || hostName(h) == host {
			out = append(out, addressOf(a.GetValue()))
		}
	}
	return out
}

// externalEndpoints returns the endpoints that a ServiceEntry gives to one of its hosts: those it lists, the workloads
// that it selects, or the host itself if the name is to be resolved and there are neither. Like istiod it repeats them
// for each address of the entry.
func (j *joiner) externalEndpoints(d *serviceSource, host value.ServiceKey) []*value.Endpoint {
	spec := &d.entry.Spec
	var all []*value.Endpoint
	resolution := j.published.services[host].Resolution // another object may define the host's service
	add := func(e *value.Endpoint) {
		if e != nil && usable(resolution, e.Addresses[0]) {
			all = append(all, e)
		}
	}
	ports := j.externalService(d, host).Ports
	target := func(p *value.Port) uint32 { return uint32(cmp.Or(p.TargetPort, p.Number)) }
	for i, e := range spec.GetEndpoints() {
		at := j.inline(fmt.Sprintf("%s-%d", d.entry.Name, i), nameOf(d.key).space, e, e.GetLabels())
		add(at.endpoint(ports, target))
	}
	for member := range d.members {
		if e := j.memberEndpoint(member, ports, target); e != nil && selectable(resolution, e.Addresses[0]) {
			add(e)
		}
	}
	resolved := spec.GetResolution() == networking.ServiceEntry_DNS ||
		spec.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN
	if resolved && len(spec.GetEndpoints()) == 0 && spec.GetWorkloadSelector() == nil {
		at := j.inline(d.entry.Name, nameOf(d.key).space, &networking.WorkloadEntry{Address: host.Host}, nil)
		at.labels = nil
		add(at.endpoint(ports, target))
	}
	one := all
	for range len(spec.GetAddresses()) - 1 {
		all = append(all, one...)
	}
	slices.SortFunc(all, compareEndpoints)
	return all
}

// selectable reports whether a service with that resolution may select a workload at address. A workload whose address
// is a host name or a socket needs a service whose names are resolved.
func selectable(r value.Resolution, address string) bool {
	_, err := netip.ParseAddr(address)
	return err == nil || r == value.DNSLB || r == value.DNSRoundRobin
}

// memberEndpoint returns the endpoint of a selected workload. On a pod, a service port leads to the container port of
// the same name, if there is one.
func (j *joiner) memberEndpoint(member value.ObjectKey, ports []*value.Port,
	target func(*value.Port) uint32) *value.Endpoint {
	if member.Kind == value.KindWorkloadEntry {
		return j.entries[nameOf(member)].endpoint(ports, target)
	}
	p := j.pods[nameOf(member)]
	at := inline{origin: p.origin, address: p.addresses[0], ports: map[string]uint32{}, weight: 1}
	for name, n := range p.workload.NamedPorts {
		at.ports[name] = uint32(n)
	}
	out := at.endpoint(ports, target)
	if out != nil {
		out.Health = p.health(value.Healthy)
	}
	return out
}
