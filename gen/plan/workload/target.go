package workload

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Target is one service port at the workload's own port.
type Target struct {
	Service *value.Service
	Port    *value.Port
	// Number is the port at which the workload listens.
	Number int
}

// Targets returns the service ports that the workload serves, but for UDP: those of Kubernetes first, then those of the
// oldest service first. Of several at one port the first decides its protocol.
func (w Workload) Targets() []Target {
	out := slices.DeleteFunc(w.Served(), func(t Target) bool { return t.Port.Protocol == value.UDP })
	slices.SortStableFunc(out, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Service.Registry, b.Service.Registry), value.OlderService(a.Service, b.Service),
			cmp.Compare(slices.Index(a.Service.Ports, a.Port), slices.Index(b.Service.Ports, b.Port)))
	})
	return out
}

// Served finds the service ports that the workload serves, in no order that means anything: those of Kubernetes by
// selector where its Pod or WorkloadEntry is known, or by what the proxy says of it (so that a workload has its
// listeners before it is ready), others by its address among the endpoints of services in its namespace.
func (w Workload) Served() (out []Target) {
	add := func(services iter.Seq[*value.Service]) {
		for svc := range services {
			for _, port := range svc.Ports {
				if number, ok := w.serves(svc, port); ok {
					out = append(out, Target{svc, port, number})
				}
			}
		}
	}
	n, namespace := w.view.Snapshot, w.proxy.Namespace
	if w.Registered == nil {
		add(n.ServicesIn(namespace))
		return out
	}
	add(n.ServicesSelecting(namespace, w.Registered.Labels)) // those of Kubernetes that do not select it are none
	add(n.OtherServicesIn(namespace))
	return out
}
