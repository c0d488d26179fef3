package plan

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Own is what a proxy's own, inbound configuration depends on. Immutable.
type Own struct {
	// Targets are the service ports that the proxy's workload serves, those of Kubernetes first, then oldest service
	// first; of several at one target port the first decides its protocol.
	Targets []Target
	// Addresses are the proxy's own, where something depends on them: a headless service of which it is a member, real
	// ports (interception mode NONE); nil otherwise.
	Addresses []string
}

// Target is one service port at the workload's own port.
type Target struct {
	Service *value.Service
	Port    *value.Port
	// Number is the port at which the workload listens.
	Number int
}

// targetsOf finds the service ports that the workload of a proxy serves, but for UDP.
func targetsOf(v *snapshot.View, p *proxy.Proxy) []Target {
	out := slices.DeleteFunc(servedBy(v, p), func(t Target) bool { return t.Port.Protocol == value.UDP })
	slices.SortStableFunc(out, func(a, b Target) int {
		if a.Service.Registry != b.Service.Registry {
			return cmp.Compare(a.Service.Registry, b.Service.Registry)
		}
		if c := OlderService(a.Service, b.Service); c != 0 {
			return c
		}
		return cmp.Compare(slices.Index(a.Service.Ports, a.Port), slices.Index(b.Service.Ports, b.Port))
	})
	return out
}

// servedBy finds the service ports that the workload of a proxy serves, in no order that means anything: those of
// Kubernetes by selector where its Pod or WorkloadEntry is known, or what the proxy says of it (so that a workload has
// its listeners before it is ready), others by its address among the endpoints of services in its namespace.
func servedBy(v *snapshot.View, p *proxy.Proxy) (out []Target) {
	w := workloadOf(v, p)
	add := func(services iter.Seq[*value.Service]) {
		for svc := range services {
			for _, port := range svc.Ports {
				if number, ok := servedAt(v, w, p, svc, port); ok {
					out = append(out, Target{svc, port, number})
				}
			}
		}
	}
	if w != nil { // of Kubernetes' only those that select it
		add(v.Snapshot.ServicesSelecting(p.Namespace, w.Labels))
		add(v.Snapshot.OtherServicesIn(p.Namespace))
	} else {
		add(v.Snapshot.ServicesIn(p.Namespace))
	}
	return out
}

// workloadOf is the registered workload at one of the proxy's addresses, or nil.
func workloadOf(v *snapshot.View, p *proxy.Proxy) *value.Workload {
	for _, a := range p.Addresses {
		if w := v.Endpoints.Workload(a); w != nil && w.Namespace == p.Namespace {
			return w
		}
	}
	return nil
}

// servedAt is the workload's own port for a service port, if it serves it. A headless Service has no endpoint at a
// WorkloadEntry.
func servedAt(v *snapshot.View, w *value.Workload, p *proxy.Proxy, svc *value.Service, port *value.Port) (int, bool) {
	if w != nil && svc.Registry == value.RegistryKubernetes {
		if len(svc.Selector) == 0 || !w.Labels.Contains(svc.Selector) {
			return 0, false
		}
		if !w.Pod {
			number := int(port.EntryTarget(w.Ports))
			return number, number != 0 && !svc.Headless
		}
		if port.TargetName != "" {
			number, ok := w.NamedPorts[port.TargetName]
			return number, ok
		}
		return cmp.Or(port.TargetPort, port.Number), true
	}
	if w == nil && svc.Registry == value.RegistryKubernetes && len(svc.Selector) > 0 &&
		p.Labels.Contains(svc.Selector) && port.TargetName == "" {
		return cmp.Or(port.TargetPort, port.Number), true
	}
	for e := range endpointsAt(v, svc, p.Addresses) {
		for _, ep := range e.Ports {
			if ep.Name == port.Name {
				return int(ep.Port), true
			}
		}
	}
	return 0, false
}

// endpointsAt yields the endpoints of a service at one of the addresses.
func endpointsAt(v *snapshot.View, svc *value.Service, addresses []string) iter.Seq[*value.Endpoint] {
	return func(yield func(*value.Endpoint) bool) {
		set := v.Endpoints.Set(svc.ServiceKey)
		if set == nil {
			return
		}
		for _, e := range set.Endpoints {
			if slices.ContainsFunc(e.Addresses, func(a string) bool { return slices.Contains(addresses, a) }) &&
				!yield(e) {
				return
			}
		}
	}
}
