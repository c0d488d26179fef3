package ingest

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func virtualServiceKind() Kind {
	k := custom(Kind{Name: value.KindVirtualService, Plural: "virtualservices", Gauge: "pilot_virt_services"},
		func(o *clientnet.VirtualService) Message { return &o.Spec }, nil)
	k.check = func(object any, l limits) *problem {
		o, p := typed[clientnet.VirtualService](object)
		if p == nil {
			p = refuseDryRun(value.KindVirtualService, o.Annotations)
		}
		if p != nil {
			return p
		}
		return checkVirtualService(o, l.regexSize)
	}
	k.put = (*joiner).putVirtualService
	return valued(k, (*joiner).resolve)
}

// meshGateway stands for all sidecars in a list of gateways.
const meshGateway = "mesh"

// qualify expands a short host name to that of a Service in namespace. It returns names with a dot, wildcards and
// addresses unchanged.
func (j *joiner) qualify(host, namespace string) string {
	host = hostName(host)
	if strings.Contains(host, ":") {
		return addressOf(host) // only addresses contain a colon
	}
	if host == "" || host == "*" || strings.Contains(host, ".") {
		return host
	}
	return host + "." + namespace + ".svc." + j.domain
}

// qualified returns a copy of a VirtualService's spec with hosts, destinations and gateways qualified.
func (j *joiner) qualified(o *clientnet.VirtualService) *networking.VirtualService {
	spec, ns := clone(&o.Spec), o.Namespace
	for i, h := range spec.Hosts {
		spec.Hosts[i] = j.qualify(h, ns)
	}
	if len(spec.Gateways) == 0 && len(spec.Hosts) > 0 {
		spec.Gateways = []string{meshGateway}
	}
	qualifyGateways(spec.Gateways, ns)
	for _, r := range spec.Http {
		j.qualifyHTTP(r, ns)
	}
	for _, r := range spec.Tcp {
		for _, m := range r.Match {
			canonicalSubnets(m.GetDestinationSubnets())
			qualifyGateways(m.GetGateways(), ns)
		}
		for _, d := range r.Route {
			j.qualifyDestination(d.GetDestination(), ns)
		}
	}
	for _, r := range spec.Tls {
		for _, m := range r.Match {
			canonicalSubnets(m.GetDestinationSubnets())
			qualifyGateways(m.GetGateways(), ns)
		}
		for _, d := range r.Route {
			j.qualifyDestination(d.GetDestination(), ns)
		}
	}
	return spec
}

// exportOf returns which namespaces see a VirtualService.
func (j *joiner) exportOf(o *clientnet.VirtualService) value.Visibility {
	return value.NewVisibility(o.Spec.GetExportTo(), defaultExport(j.config.GetDefaultVirtualServiceExportTo(),
		"~"), o.Namespace)
}

// canonicalSubnets rewrites address ranges to the form that values use.
func canonicalSubnets(list []string) {
	for i, s := range list {
		list[i] = subnetOf(s)
	}
}

func (j *joiner) qualifyHTTP(r *networking.HTTPRoute, ns string) {
	for _, m := range r.Match {
		qualifyGateways(m.GetGateways(), ns)
	}
	for _, d := range r.Route {
		j.qualifyDestination(d.GetDestination(), ns)
	}
	j.qualifyDestination(r.Mirror, ns)
	for _, m := range r.Mirrors {
		j.qualifyDestination(m.GetDestination(), ns)
	}
	if r.Delegate != nil && r.Delegate.Namespace == "" {
		r.Delegate.Namespace = ns
	}
}

func (j *joiner) qualifyDestination(d *networking.Destination, ns string) {
	if d != nil {
		d.Host = j.qualify(d.Host, ns)
	}
}

func qualifyGateways(names []string, ns string) {
	for i, g := range names {
		names[i] = qualifyGateway(g, ns)
	}
}

// qualifyGateway returns "namespace/name" for that form, for a bare name, and for an old form that looks like a host:
// name.namespace.svc….
func qualifyGateway(g, ns string) string {
	if g == meshGateway {
		return g
	}
	if in, name, ok := strings.Cut(g, "/"); ok {
		if in == "." {
			in = ns
		}
		return in + "/" + name
	}
	if name, rest, ok := strings.Cut(g, "."); ok {
		in, _, _ := strings.Cut(rest, ".")
		return in + "/" + name
	}
	return ns + "/" + g
}
