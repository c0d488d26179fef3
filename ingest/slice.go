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
	k.put = func(j *joiner, key value.ObjectKey, object any) { j.putSlice(nameOf(key), object) }
	return k
}

// slice is an EndpointSlice in force and the endpoints made from it.
type slice struct {
	*Slice
	cluster string
	// built are the endpoints in canonical order; out of date unless valid. Immutable.
	built []*value.Endpoint
	valid bool
}

// owner returns the Service that the slice belongs to.
func (s *slice) owner() objectName {
	return objectName{spaceOf(s.cluster, s.service.namespace), s.service.name}
}

// podOf returns the name of the pod that an endpoint refers to.
func (s *slice) podOf(e *sliceEndpoint) objectName {
	return objectName{spaceOf(s.cluster, e.pod.namespace), e.pod.name}
}

func (j *joiner) putSlice(name objectName, object any) {
	var built []*value.Endpoint
	prev := j.slices[name]
	if prev != nil {
		built = prev.built
		j.indexSlice(name, prev, false)
		delete(j.slices, name)
	}
	s, ok := object.(*Slice)
	if !ok || s.names || s.service.name == "" {
		return
	}
	next := &slice{Slice: s, cluster: name.space.cluster(), built: built}
	j.slices[name] = next
	j.indexSlice(name, next, true)
}

func (j *joiner) indexSlice(name objectName, s *slice, in bool) {
	change(j.slicesByService, s.owner(), name, in)
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if e.pod != (localName{}) {
			change(j.slicesByPod, s.podOf(e), name, in)
			continue
		}
		for _, a := range e.addresses {
			change(j.slicesByAddress, objectName{name.space, a}, name, in)
		}
	}
	j.marks.sets.add(j.hostOf(s.owner()))
}

// sliceStale marks a slice whose pods have changed.
func (j *joiner) sliceStale(name objectName) {
	s := j.slices[name]
	s.valid = false
	j.marks.sets.add(j.hostOf(s.owner()))
}

// hostOf returns the host that a Kubernetes Service of that name defines.
func (j *joiner) hostOf(service objectName) value.ServiceKey {
	namespace := service.space.name()
	return value.ServiceKey{Host: service.name + "." + namespace + ".svc." + j.domain, Namespace: namespace}
}

// buildSlice makes the endpoints of one slice.
func (j *joiner) buildSlice(s *slice, svc *corev1.Service) []*value.Endpoint {
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
		for n := range e.addresses {
			address := e.addresses[n : n+1 : n+1]
			from := nobody
			if p := j.behind(s, e, address[0]); p != nil {
				from = &p.origin
			} else if nobody == nil {
				nobody = j.nobody(s.cluster)
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

// behind returns the pod at an address of a slice; nil if there is none, or it is not known yet.
func (j *joiner) behind(s *slice, e *sliceEndpoint, address string) *pod {
	if e.pod != (localName{}) {
		return j.pods[s.podOf(e)]
	}
	return j.podAt(s.owner().space, address)
}

// nobody returns the origin of endpoints of a cluster that have no pod: no labels and no mutual TLS.
func (j *joiner) nobody(cluster string) *origin {
	o := j.origin(person{Identity: value.Identity{Cluster: cluster, TLSMode: tlsDisabled,
		Network: j.network(cluster, "")}})
	return &o
}

// podAt returns the pod of a namespace that has an address.
func (j *joiner) podAt(namespace space, address string) *pod {
	var best *pod
	for _, name := range j.podsByAddress[address] {
		if p := j.pods[name]; name.space == namespace && (best == nil || p.compare(best.Pod) < 0) {
			best = p
		}
	}
	return best
}
