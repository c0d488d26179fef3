package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// portHosts are the virtual hosts of one port, with the route configuration that they make up. Immutable.
type portHosts struct {
	outbound.Composition
	port  int
	entry *encodecache.Entry // the route configuration
	alone [1]*portHosts      // itself: the list of a base that has no other port
}

// newPortHosts composes the route configuration of a port: what it has before and after its virtual hosts, and these.
func (t *Tables) newPortHosts(port int, ends [2]*encodecache.Fragment, hosts outbound.VirtualHosts) *portHosts {
	h := &portHosts{port: port}
	h.entry = h.Compose(&t.Routes, routeName(port), ends, hosts)
	h.alone[0] = h
	return h
}

// edit puts the route configuration of a port into those of a base, or takes it away if h is nil: the port is not
// served.
func (h *portHosts) edit(port int) chunked.Edit[*encodecache.Entry] {
	if h == nil {
		return chunked.Edit[*encodecache.Entry]{Key: routeName(port), Delete: true}
	}
	return chunked.Edit[*encodecache.Entry]{Key: h.entry.Name(), Value: h.entry}
}

// routeName returns the name of a port's route configuration.
func routeName(port int) string { return strconv.Itoa(port) }

// portList is a list of shared HTTP ports, by number: few, so that it is copied as a whole. Immutable.
type portList []*portHosts

// portEdit replaces what a port has; now is nil where it is not served any more.
type portEdit struct {
	port int
	now  *portHosts
}

// get returns what a port has; nil if it is not served.
func (l portList) get(port int) *portHosts {
	at, ok := l.find(port)
	if !ok {
		return nil
	}
	return l[at]
}

func (l portList) find(port int) (int, bool) {
	return slices.BinarySearchFunc(l, port, func(h *portHosts, port int) int { return cmp.Compare(h.port, port) })
}

// edited returns l with edits, which are sorted by port; l itself if there are none.
func (l portList) edited(edits []portEdit) portList {
	switch {
	case len(edits) == 0:
		return l
	case len(edits) == 1 && len(l) == 1 && l[0].port == edits[0].port && edits[0].now != nil:
		return edits[0].now.alone[:]
	}
	out := make(portList, 0, len(l)+len(edits))
	for _, e := range edits {
		at, ok := l.find(e.port)
		out, l = append(out, l[:at]...), l[at:]
		if ok {
			l = l[1:]
		}
		if e.now != nil {
			out = append(out, e.now)
		}
	}
	return append(out, l...)
}

// ports yields the ports.
func (l portList) ports(yield func(int) bool) {
	for _, h := range l {
		if !yield(h.port) {
			return
		}
	}
}
