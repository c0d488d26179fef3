package ingest

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Slice is what the Store keeps of an EndpointSlice. Immutable.
type Slice struct {
	// service is the Service that the slice belongs to, in the slice's own cluster. An empty name means none.
	service localName
	names   bool // its addresses are host names, which pilotd ignores
	ports   []slicePort
	// endpoints are in the order of the object.
	endpoints []sliceEndpoint
}

// slicePort is a port that all endpoints have. Without a number it stands for all ports.
type slicePort struct {
	name   string
	number int32
	all    bool
}

// sliceEndpoint is one endpoint. Absent conditions have the API's defaults: ready, serving, not terminating.
type sliceEndpoint struct {
	addresses []string
	// pod is the pod that the endpoint names, if any.
	pod                         localName
	ready, serving, terminating bool
}

func (t *Stripper) slice(s *discovery.EndpointSlice) *Slice {
	out := &Slice{
		service: localName{namespace: t.same(s.Namespace), name: t.same(s.Labels[discovery.LabelServiceName])},
		names:   s.AddressType == discovery.AddressTypeFQDN,
		ports:   make([]slicePort, 0, len(s.Ports)), endpoints: make([]sliceEndpoint, 0, len(s.Endpoints)),
	}
	for _, p := range s.Ports {
		port := slicePort{all: p.Port == nil}
		if p.Name != nil {
			port.name = t.same(*p.Name)
		}
		if p.Port != nil {
			port.number = *p.Port
		}
		out.ports = append(out.ports, port)
	}
	is := func(b *bool, absent bool) bool { return b == nil && absent || b != nil && *b }
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		kept := sliceEndpoint{addresses: addressesOf(e.Addresses), ready: is(e.Conditions.Ready, true),
			serving: is(e.Conditions.Serving, true), terminating: is(e.Conditions.Terminating, false)}
		if r := e.TargetRef; r != nil && r.Kind == "Pod" {
			kept.pod = localName{namespace: t.same(cmp.Or(r.Namespace, s.Namespace)), name: t.same(r.Name)}
		}
		out.endpoints = append(out.endpoints, kept)
	}
	return out
}

func (s *Slice) equal(o *Slice) bool {
	return s.service == o.service && s.names == o.names && slices.Equal(s.ports, o.ports) &&
		slices.EqualFunc(s.endpoints, o.endpoints, sliceEndpoint.equal)
}

func (e sliceEndpoint) equal(o sliceEndpoint) bool {
	return e.pod == o.pod && e.ready == o.ready && e.serving == o.serving && e.terminating == o.terminating &&
		slices.Equal(e.addresses, o.addresses)
}

// health returns the health to send for an endpoint of a Service, and whether to serve the endpoint at all.
func (e *sliceEndpoint) health(svc *corev1.Service) (h value.Health, served bool) {
	switch {
	case e.ready:
		return value.Healthy, true
	case !e.terminating:
		return value.Unhealthy, true
	case keepsSessions(svc) && e.serving:
		return value.Draining, true
	}
	return value.Terminating, false
}

// keepsSessions reports whether a Service's sessions stay at their endpoints. Such endpoints drain instead of
// vanishing.
func keepsSessions(svc *corev1.Service) bool {
	return svc.Labels["istio.io/persistent-session"] != "" || svc.Labels["istio.io/persistent-session-header"] != ""
}

// endpointPorts returns the ports of all endpoints in canonical order, without those that no cluster could use.
func (s *Slice) endpointPorts() []value.EndpointPort {
	var out []value.EndpointPort
	for _, p := range s.ports {
		if !p.all {
			out = append(out, value.EndpointPort{Name: p.name, Port: uint32(p.number)})
		}
	}
	slices.SortFunc(out, comparePorts)
	return out
}

func isNoAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	return err != nil || a.Zone() != ""
}

// checkSlice refuses addresses that a proxy would refuse, because a proxy then drops all endpoints of the service.
func checkSlice(s *Slice) *problem {
	c := &check{}
	for i, p := range s.ports {
		if !p.all {
			c.within(item("ports", i)+".port", int64(p.number), 1, 65535)
		}
	}
	if s.names {
		return c.first
	}
	for i, e := range s.endpoints {
		if len(e.addresses) > 0 && !slices.ContainsFunc(e.addresses, isNoAddress) {
			continue // skip making the field's path: thousands of addresses are good
		}
		at := item("endpoints", i) + ".addresses"
		c.that(len(e.addresses) > 0, at, "expected at least one address")
		for j, a := range e.addresses {
			c.address(item(at, j), a)
		}
	}
	return c.first
}
