package mesh

import (
	"errors"
	"fmt"
	"iter"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Live is the part of a mesh that edits change, in its present state. Not safe for concurrent use.
type Live struct {
	// Immutable after Mesh.Live.
	mesh *Mesh

	// Owned by the goroutine.
	services []liveService // by lane
	route    int           // the number in the first VirtualService
	added    int           // the number in the added VirtualService; 0 if there is none
}

// liveService is the state of one lane.
type liveService struct {
	pods     []instance
	endpoint int // the number of the endpoint without a pod; 0 if there is none
}

// Live returns the state before any edit.
func (m *Mesh) Live() *Live {
	l := &Live{mesh: m, services: make([]liveService, m.Lanes())}
	for s := range l.services {
		l.services[s].pods = m.instances(s)
	}
	return l
}

// Replicas returns the present number of pods of a lane.
func (l *Live) Replicas(service int) int { return len(l.services[service].pods) }

// Objects yields the objects that edits may have changed, in their present state.
func (l *Live) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		var c Change
		c.put(l.mesh.markedRoute(l.route))
		if l.added > 0 {
			c.put(l.mesh.addedRoute(l.added))
		}
		for s := range l.services {
			for _, p := range l.services[s].pods {
				c.put(l.mesh.workloadObject(s, p))
			}
			l.endpoints(&c, s, 0)
			for _, w := range c.Writes {
				if !w.Delete && !yield(w.Object) {
					return
				}
			}
			c = Change{}
		}
	}
}

// Edit makes an edit, and returns its effect on the objects.
func (l *Live) Edit(e Edit) (c Change, err error) {
	if err := l.check(e); err != nil {
		return c, fmt.Errorf("%s: %w", e.Kind, err)
	}
	switch s := &l.services[e.Service]; e.Kind {
	case Endpoint:
		old := s.endpoint
		s.endpoint = e.Number
		l.endpoints(&c, e.Service, chunks(len(s.pods))-1)
		if l.mesh.Entries && old > 0 {
			c.remove(l.mesh.markedEntry(e.Service, old))
		}
	case Route:
		l.route = e.Number
		c.put(l.mesh.markedRoute(l.route))
	case AddRoute:
		l.added = e.Number
		c.put(l.mesh.addedRoute(l.added))
	case RemoveRoute:
		c.remove(l.mesh.addedRoute(l.added))
		l.added = 0
	case Replace:
		l.replace(&c, e)
	case Scale:
		l.scale(&c, e)
	}
	return c, nil
}

// check returns an error for an Edit whose object does not exist.
func (l *Live) check(e Edit) error {
	switch {
	case e.Service < 0 || e.Service >= len(l.services):
		return fmt.Errorf("service %d: edits are of the first %d", e.Service, len(l.services))
	case e.Number < 1 || e.Number > LastMark:
		return fmt.Errorf("number %d: expected 1 to %d", e.Number, LastMark)
	case e.Kind == AddRoute && l.mesh.unrouted() < 0:
		return errors.New("every service of this mesh has a VirtualService")
	case e.Kind == RemoveRoute && l.added == 0:
		return errors.New("none was added")
	case e.Kind == Replace && (e.Pod < 0 || e.Pod >= l.Replicas(e.Service)):
		return fmt.Errorf("pod %d: the service has %d", e.Pod, l.Replicas(e.Service))
	case e.Kind == Scale && (e.Pods < 0 || l.mesh.workload(e.Service, max(e.Pods-1, 0)) >= maxAddresses):
		return fmt.Errorf("to %d pods: expected 0 to as many as there are addresses", e.Pods)
	}
	return nil
}

// replace replaces a pod: the new one is created before the endpoints name it, and the old one is deleted afterwards.
func (l *Live) replace(c *Change, e Edit) {
	s := &l.services[e.Service]
	old := s.pods[e.Pod]
	s.pods[e.Pod] = instance{pod: e.Pod, number: e.Number, marked: true}
	c.put(l.mesh.workloadObject(e.Service, s.pods[e.Pod]))
	if !l.mesh.Entries {
		c.put(l.slice(e.Service, e.Pod/sliceSize))
	}
	c.marked()
	if old != s.pods[e.Pod] {
		c.remove(l.mesh.workloadObject(e.Service, old))
	}
}

// scale adds pods, or removes the last ones.
func (l *Live) scale(c *Change, e Edit) {
	s := &l.services[e.Service]
	before := len(s.pods)
	for i := before; i < e.Pods; i++ {
		s.pods = append(s.pods, instance{pod: i, number: e.Number, marked: i == before})
		c.put(l.mesh.workloadObject(e.Service, s.pods[i]))
		if l.mesh.Entries && i == before {
			c.marked()
		}
	}
	gone := s.pods[e.Pods:]
	s.pods = s.pods[:e.Pods:e.Pods]
	if !l.mesh.Entries {
		l.rewrite(c, e.Service, before)
	}
	for _, p := range gone {
		c.remove(l.mesh.workloadObject(e.Service, p))
	}
}

// rewrite writes the slices that have changed since the service had before pods.
func (l *Live) rewrite(c *Change, service, before int) {
	now := l.Replicas(service)
	// The slice that was the last one, or is it now, has changed.
	for chunk := max(min(before, now)-1, 0) / sliceSize; chunk < chunks(now); chunk++ {
		c.put(l.slice(service, chunk))
		if chunk == before/sliceSize {
			c.marked()
		}
	}
	for chunk := chunks(now); chunk < chunks(before); chunk++ {
		c.remove(l.mesh.emptySlice(service, chunk))
	}
}

// endpoints writes the slices of a lane from index from on, or the WorkloadEntry of an endpoint without a pod.
func (l *Live) endpoints(c *Change, service, from int) {
	s := &l.services[service]
	if l.mesh.Entries {
		if s.endpoint > 0 {
			c.put(l.mesh.markedEntry(service, s.endpoint))
		}
		return
	}
	for chunk := from; chunk < chunks(len(s.pods)); chunk++ {
		c.put(l.slice(service, chunk))
	}
}

// slice returns the present EndpointSlice of a lane. The endpoint without a pod is in the last one.
func (l *Live) slice(service, chunk int) *discoveryv1.EndpointSlice {
	s := &l.services[service]
	o := l.mesh.slice(service, chunk, s.pods)
	if s.endpoint > 0 && chunk == chunks(len(s.pods))-1 {
		o.Endpoints = append(o.Endpoints, endpoint(Address(s.endpoint)))
	}
	return o
}
