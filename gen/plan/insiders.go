package plan

import (
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// unit names what is made of the mesh for a scope in one go.
type unit struct {
	of   unitKind
	host string // of ofServices, ofSniffed and ofVirtualHost
	port int    // of ofVirtualHost, ofServed and ofListeners
}

// unitKind is a kind of units.
type unitKind byte

const (
	ofServices    unitKind = iota // clusters, assignments and address listeners of the services of a host
	ofSniffed                     // route configurations that a host has for itself
	ofVirtualHost                 // the virtual host of a host on a port
	ofServed                      // whether a port has a route configuration
	ofListeners                   // listeners of a port at the wildcard address
	ofVirtual                     // the listener of all intercepted connections
)

// insiders are, for each unit that was made for an outsider (a namespace that has nothing and that nobody names), the
// namespaces for which it may be another one. They are not worked out by rules of their own: while a unit is made for
// the outsider, every question that the answer for some namespace would be another one to notes that namespace, and
// where none was noted, all answers and therefore the unit are the same. So whatever reads a Scope's namespace must ask
// through the methods below.
//
// A nil insiders notes nothing. Owned by the config goroutine.
type insiders struct {
	byUnit      map[unit][]string
	byNamespace map[string]map[unit]struct{}
	at          unit // that is made now
	// met are the namespaces for which a unit that was made since meet was another one before, or is now.
	met map[string]struct{}
}

// outside is a namespace that there is not: no name has a space.
const outside = "outside of all"

func newInsiders() *insiders {
	return &insiders{byUnit: map[unit][]string{}, byNamespace: map[string]map[unit]struct{}{}}
}

// meet forgets which namespaces were met.
func (x *insiders) meet() { x.met = map[string]struct{}{} }

// begin is that a unit is made anew.
func (x *insiders) begin(u unit) {
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
func (x *insiders) meetAll(u unit) {
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
		units = map[unit]struct{}{}
		x.byNamespace[namespace] = units
	}
	units[x.at] = struct{}{}
	x.byUnit[x.at] = append(x.byUnit[x.at], namespace)
	x.met[namespace] = struct{}{}
}

// watched is the scope of an outsider, which notes its insiders.
func (sc *Scope) watched(x *insiders) *Scope {
	out := *sc
	out.insiders = x
	return &out
}

// unwatched is the scope without anybody who notes what it is asked.
func (sc *Scope) unwatched() *Scope {
	if sc.insiders == nil {
		return sc
	}
	return sc.watched(nil)
}

// begin is that a unit is made for the scope.
func (sc *Scope) begin(u unit) {
	if sc.insiders != nil {
		sc.insiders.begin(u)
	}
}

// in reports whether the scope is of that namespace.
func (sc *Scope) in(namespace string) bool {
	if sc.insiders != nil {
		sc.insiders.note(namespace)
	}
	return sc.Namespace == namespace
}

// sees reports whether what is exported so is for the scope's namespace.
func (sc *Scope) sees(v value.Visibility) bool {
	if sc.insiders != nil && !v.Public {
		for _, ns := range v.Namespaces {
			sc.insiders.note(ns)
		}
	}
	return v.VisibleTo(sc.Namespace)
}

// rules are the DestinationRules in force when the scope's proxies call a service, whatever their labels.
func (sc *Scope) rules(n *snapshot.Snapshot, svc *value.Service) snapshot.Rules {
	sc.noteRules(n, svc)
	return n.RulesFor(sc.Namespace, svc)
}

// noteRules notes the namespaces that have rules for a service, and those to which one is exported.
func (sc *Scope) noteRules(n *snapshot.Snapshot, svc *value.Service) {
	if sc.insiders == nil {
		return
	}
	for ns, exported := range n.RulesAbout(svc.Host) {
		sc.insiders.note(ns)
		for _, r := range exported {
			sc.sees(r.Export)
		}
	}
}

// namesakes are the hosts that a name without dots is short for.
func (sc *Scope) namesakes(n *snapshot.Snapshot, short string) []string {
	if sc.insiders != nil {
		for _, host := range namesakes(n, short) {
			sc.insiders.note(namespaceOf(n, host))
		}
	}
	return []string{short + "." + sc.Namespace + ".svc." + n.Mesh.DomainSuffix}
}
