package ingest

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// slice is an EndpointSlice in force.
type slice struct {
	object *discovery.EndpointSlice
	// service is whose endpoints they are.
	service objectName
	// built are the endpoints in canonical order: as they are while valid, else as they were. Immutable.
	built []*value.Endpoint
	valid bool
}

func (w *world) putSlice(name objectName, object any) {
	var built []*value.Endpoint
	if prev := w.slices[name]; prev != nil {
		built = prev.built
		w.indexSlice(name, prev, false)
		delete(w.slices, name)
	}
	s, ok := object.(*discovery.EndpointSlice)
	if !ok || s.AddressType == discovery.AddressTypeFQDN || s.Labels[discovery.LabelServiceName] == "" {
		return
	}
	next := &slice{object: s, service: objectName{s.Namespace, s.Labels[discovery.LabelServiceName]}, built: built}
	w.slices[name] = next
	w.indexSlice(name, next, true)
}

func (w *world) indexSlice(name objectName, s *slice, in bool) {
	change(w.slicesByService, s.service, name, in)
	for i := range s.object.Endpoints {
		e := &s.object.Endpoints[i]
		if p, ok := podRef(s.object, e); ok {
			change(w.slicesByPod, p, name, in)
			continue
		}
		for _, a := range e.Addresses {
			change(w.slicesByAddress, objectName{name.namespace, a}, name, in)
		}
	}
	w.marks.sets.add(w.hostOf(s.service))
}

// podRef is the pod that an endpoint names.
func podRef(s *discovery.EndpointSlice, e *discovery.Endpoint) (objectName, bool) {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
		return objectName{}, false
	}
	return objectName{cmp.Or(e.TargetRef.Namespace, s.Namespace), e.TargetRef.Name}, true
}

// sliceStale marks a slice whose pods changed.
func (w *world) sliceStale(name objectName) {
	s := w.slices[name]
	s.valid = false
	w.marks.sets.add(w.hostOf(s.service))
}

// hostOf is the host that a Kubernetes Service of that name defines.
func (w *world) hostOf(service objectName) value.ServiceKey {
	return value.ServiceKey{Host: service.name + "." + service.namespace + ".svc." + w.domain, Namespace: service.namespace}
}

// buildSlice makes the endpoints of one slice.
func (w *world) buildSlice(s *discovery.EndpointSlice, svc *corev1.Service) []*value.Endpoint {
	ports := slicePorts(s)
	if len(ports) == 0 {
		return nil
	}
	var out []*value.Endpoint
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		health, served := healthOf(e.Conditions, svc)
		if !served {
			continue
		}
		for _, address := range e.Addresses {
			from := w.behind(s, e, address)
			made := from.origin.endpoint()
			made.Addresses, made.Ports, made.Health = []string{address}, ports, from.origin.health(health)
			out = append(out, made)
		}
	}
	slices.SortFunc(out, compareEndpoints)
	return out
}

// behind is the pod behind an address of a slice. A pod that is not known (yet), or none, has no labels and speaks no mutual TLS.
func (w *world) behind(s *discovery.EndpointSlice, e *discovery.Endpoint, address string) *pod {
	if name, ok := podRef(s, e); ok {
		if p := w.pods[name]; p != nil {
			return p
		}
	} else if p := w.podAt(s.Namespace, address); p != nil {
		return p
	}
	network := w.network("")
	return &pod{origin: w.origin(person{Identity: value.Identity{TLSMode: tlsDisabled, Network: network}})}
}

// podAt is the pod of a namespace that has an address.
func (w *world) podAt(namespace, address string) *pod {
	var best *pod
	for _, name := range w.podsByAddress[address] {
		if p := w.pods[name]; name.namespace == namespace && (best == nil || p.before(best)) {
			best = p
		}
	}
	return best
}

// healthOf reads the conditions of an endpoint. An absent condition is what the Kubernetes API says: ready, serving, not terminating.
func healthOf(c discovery.EndpointConditions, svc *corev1.Service) (h value.Health, served bool) {
	is := func(b *bool, absent bool) bool { return b == nil && absent || b != nil && *b }
	switch {
	case is(c.Ready, true):
		return value.Healthy, true
	case !is(c.Terminating, false):
		return value.Unhealthy, true
	case keepsSessions(svc) && is(c.Serving, true):
		return value.Draining, true
	}
	return value.Terminating, false
}

// keepsSessions reports whether a Service's sessions stay with their endpoints, which then drain.
func keepsSessions(svc *corev1.Service) bool {
	return svc.Labels["istio.io/persistent-session"] != "" || svc.Labels["istio.io/persistent-session-header"] != ""
}

func slicePorts(s *discovery.EndpointSlice) []value.EndpointPort {
	var out []value.EndpointPort
	for _, p := range s.Ports {
		if p.Port == nil {
			continue // All ports: nothing that a cluster could be sent to.
		}
		port := value.EndpointPort{Port: uint32(*p.Port)}
		if p.Name != nil {
			port.Name = *p.Name
		}
		out = append(out, port)
	}
	slices.SortFunc(out, comparePorts)
	return out
}
