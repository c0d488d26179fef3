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
}

// newPortHosts composes the route configuration of a port: what it has before and after its virtual hosts, and these.
func (t *Tables) newPortHosts(port int, ends [2]*encodecache.Fragment, hosts outbound.VirtualHosts) *portHosts {
	h := &portHosts{port: port}
	h.entry = h.Compose(&t.Routes, routeName(port), ends, hosts)
	return h
}

// edit puts the route configuration into those of a base.
func (h *portHosts) edit() chunked.Edit[*encodecache.Entry] {
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
	if len(edits) == 0 {
		return l
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
