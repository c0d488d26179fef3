package scope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/value"
)

// trimKey is a service with fewer ports: the comma-separated numbers.
type trimKey struct {
	service *value.Service
	ports   string
}

// Trims intern the services that have fewer ports for some scope. Safe for concurrent use.
type Trims struct {
	table *encodecache.Table[trimKey, value.Service]
}

// NewTrims makes an empty table.
func NewTrims() *Trims {
	return &Trims{encodecache.NewTable(func(k trimKey) *value.Service { return trimmed(k) })}
}

// Len returns how many services somebody holds.
func (t *Trims) Len() int { return t.table.Len() }

// trim returns svc with only those of its ports; the same pointer for the same service and ports while anyone holds it.
func (sc *Scope) trim(svc *value.Service, ports []int) *value.Service {
	slices.Sort(ports)
	return sc.trims.table.Get(trimKey{svc, strings.Trim(fmt.Sprint(slices.Compact(ports)), "[]")})
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

// destinationPorts returns the ports at which vs routes to host for the scope's proxies, and whether it does at all of
// them because a destination names none.
func (sc *Scope) destinationPorts(vs *value.VirtualService, host string) (ports []int, whole bool) {
	add := func(d value.Destination) {
		switch {
		case d.Host != host:
		case d.Port == 0:
			whole = true
		default:
			ports = append(ports, d.Port)
		}
	}
	for _, r := range vs.HTTP {
		if len(r.Matches) > 0 && !slices.ContainsFunc(r.Matches, func(m *value.HTTPMatch) bool {
			return m.Namespace == "" || sc.In(m.Namespace)
		}) {
			continue
		}
		for _, d := range r.Destinations {
			add(d.Destination)
		}
		for _, m := range r.Mirrors {
			add(m.Destination)
		}
	}
	for _, r := range slices.Concat(vs.TCP, vs.TLS) {
		for _, d := range r.Destinations {
			add(d.Destination)
		}
	}
	return ports, whole
}
