package scope

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// What a scope may see, found from its imports: an explicit scope costs what it imports, whatever else the mesh has.

// Hosts returns all hosts of which an explicit scope may see services or VirtualServices, destinations of those that it
// imports included; it may hold more.
func (sc *Scope) Hosts(n *snapshot.Snapshot) map[string]struct{} {
	out := map[string]struct{}{}
	rules := func(list iter.Seq[*value.VirtualService]) {
		for vs := range list {
			if !sc.SeesVirtualService(vs) {
				continue
			}
			for _, h := range vs.Hosts {
				out[h] = struct{}{}
			}
			for h := range snapshot.Destinations(vs) {
				out[h] = struct{}{}
			}
		}
	}
	for _, handle := range sc.imports {
		i := handle.Value()
		if !strings.HasPrefix(i.host, "*") {
			out[i.host] = struct{}{}
			for p := range snapshot.Patterns(i.host) {
				rules(n.VirtualServicesOfHost(p))
			}
			rules(n.VirtualServicesOfOddPatterns())
			continue
		}
		services, virtual := n.Services(), n.VirtualServices()
		if i.namespace != "*" {
			services, virtual = n.ServicesIn(i.namespace), n.VirtualServicesIn(i.namespace)
		}
		for svc := range services {
			if value.HostMatches(i.host, svc.Host) {
				out[svc.Host] = struct{}{}
			}
		}
		rules(virtual)
	}
	return out
}

// Runs returns the services of a class on a port that the scope may see, in one or more runs; each is oldest first, and
// they may overlap.
func (sc *Scope) Runs(n *snapshot.Snapshot, port int, class snapshot.PortClass) (out []iter.Seq[*value.Service]) {
	if sc.Wide() {
		return append(out, n.Claims(port, class))
	}
	for _, handle := range sc.imports {
		switch i := handle.Value(); {
		case !strings.HasPrefix(i.host, "*"):
			out = append(out, ofHost(n, i, port, class))
		case i.namespace == "*":
			return append(out[:0], n.Claims(port, class))
		default:
			out = append(out, n.ClaimsIn(i.namespace, port, class))
		}
	}
	return out
}

// ofHost yields the services of a class on a port that an import names.
func ofHost(n *snapshot.Snapshot, i hostImport, port int, class snapshot.PortClass) iter.Seq[*value.Service] {
	return func(yield func(*value.Service) bool) {
		var found []*value.Service
		for svc := range n.ServicesOfHost(i.host) {
			if i.in(svc.Namespace) && snapshot.ClassOn(svc, port) == class {
				found = append(found, svc)
			}
		}
		slices.SortFunc(found, value.OlderService)
		for _, svc := range found {
			if !yield(svc) {
				return
			}
		}
	}
}

// Candidates yields the services of a class on a port that the scope may see, each once.
func (sc *Scope) Candidates(n *snapshot.Snapshot, port int, class snapshot.PortClass) iter.Seq[*value.Service] {
	runs := sc.Runs(n, port, class)
	if len(runs) == 1 {
		return runs[0]
	}
	return func(yield func(*value.Service) bool) {
		seen := map[*value.Service]struct{}{}
		for _, run := range runs {
			for svc := range run {
				if _, ok := seen[svc]; ok {
					continue
				}
				if seen[svc] = struct{}{}; !yield(svc) {
					return
				}
			}
		}
	}
}

// ServesHTTP reports whether the scope has a service with an HTTP port of that number, or with a sniffed one at an
// address that it shares.
func (sc *Scope) ServesHTTP(n *snapshot.Snapshot, port int) bool {
	for _, class := range []snapshot.PortClass{snapshot.PublicHTTP, snapshot.SomeHTTP, snapshot.Wild,
		snapshot.Aliases} {
		for svc := range sc.Candidates(n, port, class) {
			if sc.routesOn(n, svc.Host, port) {
				return true
			}
		}
	}
	if sc.Wide() {
		return false
	}
	for host := range sc.Hosts(n) { // what it only knows as a destination
		if sc.routesOn(n, host, port) {
			return true
		}
	}
	return false
}

// routesOn reports whether the service that host means for the scope has requests on a port, in the port's shared
// listener.
func (sc *Scope) routesOn(n *snapshot.Snapshot, host string, port int) bool {
	svc := sc.Service(n, host)
	if svc == nil || svc.PortByNumber(port) == nil {
		return false
	}
	p := svc.PortByNumber(port).Protocol
	return p.IsHTTP() || p == value.Auto && svc.SharesAddress()
}
