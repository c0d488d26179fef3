package plan

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// trim is svc with only those of its ports; the same pointer for the same service and ports while anyone holds it.
func (sc *Scope) trim(svc *value.Service, ports []int) *value.Service {
	slices.Sort(ports)
	return sc.trims.Get(trimKey{svc, strings.Trim(fmt.Sprint(slices.Compact(ports)), "[]")})
}

// trimmed makes the service of a trimKey.
func trimmed(k trimKey) *value.Service {
	out := *k.service
	out.Ports = nil
	keep := strings.Fields(k.ports)
	for _, p := range k.service.Ports {
		if slices.Contains(keep, fmt.Sprint(p.Number)) {
			out.Ports = append(out.Ports, p)
		}
	}
	return &out
}

// destinationPorts are the ports at which vs routes to host for clients of a namespace; whole, if a destination names
// none.
func destinationPorts(vs *value.VirtualService, host, client string) (ports []int, whole bool) {
	add := func(d *networking.Destination) {
		if d.GetHost() != host {
			return
		}
		if d.GetPort() == nil {
			whole = true
			return
		}
		ports = append(ports, int(d.GetPort().GetNumber()))
	}
	for _, r := range vs.Spec.GetHttp() {
		if len(r.GetMatch()) > 0 && !slices.ContainsFunc(r.GetMatch(), func(m *networking.HTTPMatchRequest) bool {
			return m.GetSourceNamespace() == "" || m.GetSourceNamespace() == client
		}) {
			continue
		}
		for _, d := range r.GetRoute() {
			add(d.GetDestination())
		}
		if r.GetMirror() != nil {
			add(r.GetMirror())
		}
		for _, m := range r.GetMirrors() {
			add(m.GetDestination())
		}
	}
	for _, r := range vs.Spec.GetTcp() {
		for _, d := range r.GetRoute() {
			add(d.GetDestination())
		}
	}
	for _, r := range vs.Spec.GetTls() {
		for _, d := range r.GetRoute() {
			add(d.GetDestination())
		}
	}
	return ports, whole
}
