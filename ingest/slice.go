package ingest

import (
	discovery "k8s.io/api/discovery/v1"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func sliceKind() Kind {
	k := builtin[discovery.EndpointSlice, discovery.EndpointSliceList](Kind{Name: value.KindEndpointSlice,
		Plural: "endpointslices", InNamespaces: true, Lenient: true, Registry: true})
	k.strip, k.same = stripped((*Stripper).slice), sameStripped((*Slice).equal)
	k.check = checked(checkSlice)
	k.put = func(w *world, key value.ObjectKey, object any) { w.putSlice(nameOf(key), object) }
	return k
}

// slice is an EndpointSlice in force.
type slice struct {
	*Slice
	cluster string
	// built are the endpoints in canonical order: as they are while valid, else as they were. Immutable.
	built []*value.Endpoint
	valid bool
}

// owner is the Service whose endpoints the slice has.
func (s *slice) owner() objectName {
	return objectName{spaceOf(s.cluster, s.service.namespace), s.service.name}
}

// podOf is the pod that an endpoint names.
func (s *slice) podOf(e *sliceEndpoint) objectName {
	return objectName{spaceOf(s.cluster, e.pod.namespace), e.pod.name}
}

func (w *world) putSlice(name objectName, object any) {
	var built []*value.Endpoint
	prev := w.slices[name]
	if prev != nil {
		built = prev.built
		w.indexSlice(name, prev, false)
		delete(w.slices, name)
	}
	s, ok := object.(*Slice)
	if !ok || s.names || s.service.name == "" {
		return
	}
	next := &slice{Slice: s, cluster: name.space.cluster(), built: built}
	w.slices[name] = next
	w.indexSlice(name, next, true)
}

func (w *world) indexSlice(name objectName, s *slice, in bool) {
	change(w.slicesByService, s.owner(), name, in)
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if e.pod != (localName{}) {
			change(w.slicesByPod, s.podOf(e), name, in)
			continue
		}
		for _, a := range e.addresses {
			change(w.slicesByAddress, objectName{name.space, a}, name, in)
		}
	}
	w.marks.sets.add(w.hostOf(s.owner()))
}

// sliceStale marks a slice whose pods changed.
func (w *world) sliceStale(name objectName) {
	s := w.slices[name]
	s.valid = false
	w.marks.sets.add(w.hostOf(s.owner()))
}

// hostOf is the host that a Kubernetes Service of that name defines.
func (w *world) hostOf(service objectName) value.ServiceKey {
	namespace := service.space.name()
	return value.ServiceKey{Host: service.name + "." + namespace + ".svc." + w.domain, Namespace: namespace}
}

// buildSlice makes the endpoints of one slice.
func (w *world) buildSlice(s *slice, svc *corev1.Service) []*value.Endpoint {
	ports := s.endpointPorts()
	if len(ports) == 0 {
		return nil
	}
	var nobody *origin
	out := make([]*value.Endpoint, 0, len(s.endpoints))
	for i := range s.endpoints {
		e := &s.endpoints[i]
		health, served := e.health(svc)
		if !served {
			continue
		}
		for j := range e.addresses {
			address := e.addresses[j : j+1 : j+1]
			from := nobody
			if p := w.behind(s, e, address[0]); p != nil {
				from = &p.origin
			} else if nobody == nil {
				nobody = w.nobody(s.cluster)
				from = nobody
			}
			made := from.endpoint()
			made.Addresses, made.Ports, made.Health = address, ports, from.health(health)
			out = append(out, made)
		}
	}
	slices.SortFunc(out, compareEndpoints)
	return out
}

// behind is the pod behind an address of a slice; nil if it is not known (yet), or there is none.
func (w *world) behind(s *slice, e *sliceEndpoint, address string) *pod {
	if e.pod != (localName{}) {
		return w.pods[s.podOf(e)]
	}
	return w.podAt(s.owner().space, address)
}

// nobody is where an endpoint of a cluster comes from that has no pod: it has no labels and speaks no mutual TLS.
func (w *world) nobody(cluster string) *origin {
	o := w.origin(person{Identity: value.Identity{Cluster: cluster, TLSMode: tlsDisabled,
		Network: w.network(cluster, "")}})
	return &o
}

// podAt is the pod of a namespace that has an address.
func (w *world) podAt(namespace space, address string) *pod {
	var best *pod
	for _, name := range w.podsByAddress[address] {
		if p := w.pods[name]; name.space == namespace && (best == nil || p.compare(best.Pod) < 0) {
			best = p
		}
	}
	return best
}
