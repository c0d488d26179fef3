package workload

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Workload is what a View knows of the workload of one proxy. It lives for one computation.
type Workload struct {
	view  *snapshot.View
	proxy *proxy.Proxy
	// Registered is the Pod or WorkloadEntry at one of the proxy's addresses; nil if there is none.
	Registered *value.Workload
}

// Of finds the workload of a proxy.
func Of(v *snapshot.View, p *proxy.Proxy) Workload {
	w := Workload{view: v, proxy: p}
	for _, a := range p.Addresses {
		if at := v.Endpoints.Workload(a); at != nil && at.Namespace == p.Namespace {
			w.Registered = at
			break
		}
	}
	return w
}

// Labels returns the labels of the workload: those of its Pod or WorkloadEntry, else of the oldest ServiceEntry's
// endpoint at its address, else, also where that endpoint has none of its own, those that the proxy itself reports.
func (w Workload) Labels() value.Labels {
	if w.Registered != nil {
		return w.Registered.Labels
	}
	var at *value.Endpoint
	var oldest *value.Service
	for svc := range w.view.Snapshot.OtherServicesIn(w.proxy.Namespace) {
		if oldest != nil && value.OlderService(oldest, svc) < 0 {
			continue
		}
		for e := range w.endpoints(svc) {
			at, oldest = e, svc
			break
		}
	}
	if at != nil && at.HasOwnLabels() {
		return at.Labels
	}
	return w.proxy.Labels.Unpack()
}

// Sidecar returns the Sidecar object in force for the workload, whose labels it is given: one of its namespace whose
// selector it satisfies, else its namespace's without a selector, else the root namespace's without one. Of several the
// oldest counts. It is nil if there is none.
func (w Workload) Sidecar(labels value.Labels) (best *value.Sidecar) {
	n := w.view.Snapshot
	for s := range n.SidecarsSelecting(w.proxy.Namespace, labels) {
		if best == nil || s.Older(best.Meta) {
			best = s
		}
	}
	if best != nil {
		return best
	}
	for _, ns := range []string{w.proxy.Namespace, n.Mesh.RootNamespace} {
		for s := range n.SidecarsOfAll(ns) {
			return s
		}
	}
	return nil
}

// DependsOn reports whether the workload serves a port of a service, or the service has an endpoint at its address,
// whose labels may be the workload's.
func (w Workload) DependsOn(k value.ServiceKey) bool {
	svc := w.view.Snapshot.Service(k)
	if svc == nil {
		return false
	}
	for range w.endpoints(svc) {
		return true
	}
	for _, port := range svc.Ports {
		if _, ok := w.serves(svc, port); ok {
			return true
		}
	}
	return false
}

// endpoints yields the endpoints of a service at the workload's addresses.
func (w Workload) endpoints(svc *value.Service) iter.Seq[*value.Endpoint] {
	return func(yield func(*value.Endpoint) bool) {
		set := w.view.Endpoints.Set(svc.ServiceKey)
		if set == nil {
			return
		}
		for _, e := range set.Endpoints {
			if slices.ContainsFunc(e.Addresses,
				func(a string) bool { return slices.Contains(w.proxy.Addresses, a) }) && !yield(e) {
				return
			}
		}
	}
}

// serves returns the workload's own port for a service port, if it serves it. A headless Service has no endpoint at a
// WorkloadEntry.
func (w Workload) serves(svc *value.Service, port *value.Port) (int, bool) {
	at := w.Registered
	if at != nil && svc.Registry == value.RegistryKubernetes {
		if len(svc.Selector) == 0 || !at.Labels.Contains(svc.Selector) {
			return 0, false
		}
		if !at.Pod {
			number := int(port.EntryTarget(at.Ports))
			return number, number != 0 && !svc.Headless
		}
		if port.TargetName != "" {
			number, ok := at.NamedPorts[port.TargetName]
			return number, ok
		}
		return cmp.Or(port.TargetPort, port.Number), true
	}
	if at == nil && svc.Registry == value.RegistryKubernetes && len(svc.Selector) > 0 &&
		w.proxy.Labels.Contains(svc.Selector) && port.TargetName == "" {
		return cmp.Or(port.TargetPort, port.Number), true
	}
	for e := range w.endpoints(svc) {
		for _, ep := range e.Ports {
			if ep.Name == port.Name {
				return int(ep.Port), true
			}
		}
	}
	return 0, false
}
