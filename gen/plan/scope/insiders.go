package scope

import (
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Unit names what is made of the mesh for a scope in one go.
type Unit struct {
	Kind unitKind
	Host string // of ofServices, ofSniffed and ofVirtualHost
	Port int    // of ofVirtualHost, ofServed and ofListeners
}

// unitKind is a kind of units.
type unitKind byte

const (
	OfServices    unitKind = iota // clusters, assignments and address listeners of the services of a host
	OfSniffed                     // route configurations that a host has for itself
	OfVirtualHost                 // the virtual host of a host on a port
	OfServed                      // whether a port has a route configuration
	OfListeners                   // listeners of a port at the wildcard address
	OfVirtual                     // the listener of all intercepted connections
)

// insiders are, for each unit that was made for an outsider (a namespace that has nothing and that nobody names), the
// namespaces for which it may be another one. They are not worked out by rules of their own: while a unit is made for
// the outsider, every question that the answer for some namespace would be another one to notes that namespace, and
// where none was noted, all answers and therefore the unit are the same. So whatever reads a Scope's namespace must ask
// through the methods below.
//
// A nil insiders notes nothing. Owned by the config goroutine.
type insiders struct {
	byUnit      map[Unit][]string
	byNamespace map[string]map[Unit]struct{}
	at          Unit // that is made now
	// met are the namespaces for which a unit that was made since meet was another one before, or is now.
	met map[string]struct{}
}

// Outsider is a namespace that there is not: no name has a space.
const Outsider = "outside of all"

func newInsiders() *insiders {
	return &insiders{byUnit: map[Unit][]string{}, byNamespace: map[string]map[Unit]struct{}{}}
}

// meet forgets which namespaces were met.
func (x *insiders) meet() { x.met = map[string]struct{}{} }

// begin is that a unit is made anew.
func (x *insiders) begin(u Unit) {
	x.at = u
	x.meetAll(u)
	for _, ns := range x.byUnit[u] {
		delete(x.byNamespace[ns], u)
		if len(x.byNamespace[ns]) == 0 {
			delete(x.byNamespace, ns)
		}
	}
	delete(x.byUnit, u)
}

// meetAll adds the insiders of a unit to those that are met.
func (x *insiders) meetAll(u Unit) {
	for _, ns := range x.byUnit[u] {
		x.met[ns] = struct{}{}
	}
}

// note adds an insider of the unit that is made now.
func (x *insiders) note(namespace string) {
	units := x.byNamespace[namespace]
	if _, ok := units[x.at]; ok {
		return
	}
	if units == nil {
		units = map[Unit]struct{}{}
		x.byNamespace[namespace] = units
	}
	units[x.at] = struct{}{}
	x.byUnit[x.at] = append(x.byUnit[x.at], namespace)
	x.met[namespace] = struct{}{}
}

// Watched returns the scope of an outsider, which notes its insiders.
func (sc *Scope) Watched() *Scope {
	out := *sc
	out.insiders = newInsiders()
	return &out
}

// Unwatched returns the scope without anybody who notes what it is asked.
func (sc *Scope) Unwatched() *Scope {
	if sc.insiders == nil {
		return sc
	}
	out := *sc
	out.insiders = nil
	return &out
}

// Watch makes the scope of an outsider forget all insiders, as the outsider is made from nothing.
func (sc *Scope) Watch() {
	sc.insiders = newInsiders()
	sc.insiders.meet()
}

// Meet forgets which namespaces were met.
func (sc *Scope) Meet() { sc.insiders.meet() }

// Met reports whether a unit that was made since meet was another one for a namespace, or is now.
func (sc *Scope) Met(namespace string) bool {
	_, ok := sc.insiders.met[namespace]
	return ok
}

// MeetAll adds the insiders of a unit to those that are met, if the scope is an outsider's.
func (sc *Scope) MeetAll(u Unit) {
	if sc.insiders != nil {
		sc.insiders.meetAll(u)
	}
}

// MeetServed does that for all units of route configurations.
func (sc *Scope) MeetServed() {
	for u := range sc.insiders.byUnit {
		if u.Kind == OfServed {
			sc.insiders.meetAll(u)
		}
	}
}

// Inside returns what a namespace, of which to is the scope, has otherwise than the outsider.
func (sc *Scope) Inside(to *Scope, k *Memo) *Affected {
	out := &Affected{Hosts: map[string]struct{}{}, Routes: map[string]struct{}{}, ports: map[int]struct{}{},
		routePorts: map[int]struct{}{}, sniffed: map[string]struct{}{}, served: true, Memo: k}
	for u := range sc.insiders.byNamespace[to.Namespace] {
		switch u.Kind {
		case OfServices:
			out.Hosts[u.Host] = struct{}{}
		case OfSniffed:
			out.sniffed[u.Host] = struct{}{}
			if to.Traits.Type == value.Proxyless { // for which a virtual host is of both kinds
				out.Routes[u.Host] = struct{}{}
			}
		case OfVirtualHost:
			out.Routes[u.Host], out.routePorts[u.Port] = struct{}{}, struct{}{}
		case OfServed:
			out.routePorts[u.Port] = struct{}{}
		case OfListeners:
			out.ports[u.Port] = struct{}{}
		case OfVirtual:
			out.Virtual = true
		}
	}
	return out
}

// AtEach notes every namespace with a service on a port.
func (sc *Scope) AtEach(n *snapshot.Snapshot, port int) {
	if !sc.noted() {
		return
	}
	for svc := range n.ServicesOnPort(port) {
		sc.note(svc.Namespace)
	}
}

// Begin is that a unit is made for the scope.
func (sc *Scope) Begin(u Unit) {
	if sc.insiders != nil {
		sc.insiders.begin(u)
	}
}

// note is that the answer to something is another one in a namespace than elsewhere.
func (sc *Scope) note(namespace string) {
	if sc.insiders != nil {
		sc.insiders.note(namespace)
	}
	if sc.asked != nil {
		sc.ask(question{about: ofPlace, namespace: namespace})
	}
}

// noted reports whether somebody wants to know what is asked of the scope.
func (sc *Scope) noted() bool { return sc.insiders != nil || sc.asked != nil }

// In reports whether the scope is of that namespace.
func (sc *Scope) In(namespace string) bool {
	sc.note(namespace)
	return sc.Namespace == namespace
}

// Sees reports whether what is exported so is for the scope's namespace.
func (sc *Scope) Sees(v value.Visibility) bool {
	if !v.Public && sc.noted() {
		for _, ns := range v.Namespaces {
			sc.note(ns)
		}
	}
	return v.VisibleTo(sc.Namespace)
}

// destinationRules returns the DestinationRules in force when the Scope's proxies call a service, whatever their
// labels.
func (sc *Scope) destinationRules(n *snapshot.Snapshot, svc *value.Service) snapshot.Rules {
	sc.noteRules(n, svc)
	return n.RulesFor(sc.Namespace, svc)
}

// noteRules notes the namespaces that have rules for a service, and those to which one is exported.
func (sc *Scope) noteRules(n *snapshot.Snapshot, svc *value.Service) {
	if !sc.noted() {
		return
	}
	for ns, exported := range n.RulesAbout(svc.Host) {
		sc.note(ns)
		for _, r := range exported {
			sc.Sees(r.Export)
		}
	}
}

// namesakes returns the hosts that a name without dots is short for.
func (sc *Scope) namesakes(n *snapshot.Snapshot, short string) []string {
	if sc.noted() {
		for _, host := range namesakes(n, short) {
			sc.note(namespaceOf(n, host))
		}
	}
	return []string{short + "." + sc.Namespace + ".svc." + n.Mesh.DomainSuffix}
}
