package sidecar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// subscribe changes the subscribed names of a type. repeat sends a request even if they are the same, as
// State-of-the-World clients do for changed clusters.
func (c *Client) subscribe(t xdstype.Type, n *names, repeat bool) []Request {
	s := &c.types[t]
	old := s.names
	if n == nil && old == nil || n == old && (c.spec.Delta || !repeat) {
		return nil
	}
	if n == nil {
		n = &names{}
	}
	s.names = n
	if n != old {
		s.have = c.table.only(s.have, n)
	}
	if c.spec.Delta {
		return c.difference(t, old, n)
	}
	s.again = true
	s.open = true
	return []Request{c.answer(t, "")}
}

// difference returns the incremental request that changes the subscription from old to n.
func (c *Client) difference(t xdstype.Type, old, n *names) []Request {
	s := &c.types[t]
	m := wire.Request{TypeURL: t.URL(), Delta: true}
	if old == nil {
		m.Names = n.encoded
		s.again = true
	} else {
		for _, name := range n.without(old) {
			m.Names = wire.AppendName(m.Names, name)
			s.again = true
		}
		for _, name := range old.without(n) {
			m.Names = wire.AppendUnsubscribe(m.Names, name)
		}
	}
	s.open = true
	if len(m.Names) == 0 {
		return nil
	}
	return []Request{{Type: t, message: m}}
}

// without returns the names that other, of the same type, lacks.
func (n *names) without(other *names) (out []string) {
	lacks := map[string]bool{}
	for _, name := range n.list {
		lacks[name] = true
	}
	for _, name := range other.list {
		delete(lacks, name)
	}
	for _, name := range n.list {
		if lacks[name] {
			out = append(out, name)
		}
	}
	return out
}

// complete reports whether the client has everything that it asked for. A client that comes back with everything is
// complete once it is answered at all, because a server need not answer types whose present version the client has.
func (c *Client) complete() bool {
	if c.back {
		return c.held == nil
	}
	has := func(t xdstype.Type) bool {
		s := &c.types[t]
		return s.names == nil || len(s.have.list) >= len(s.names.list)
	}
	if c.spec.Kind == Proxyless {
		return has(xdstype.Listener) && has(xdstype.Route) && has(xdstype.Cluster) && has(xdstype.Endpoint) &&
			c.types[xdstype.Cluster].begun
	}
	return c.held == nil && c.types[xdstype.Cluster].begun && c.types[xdstype.Listener].begun && has(xdstype.Route)
}

// Lacks describes what the client has asked for and does not have, by type, with one name as an example.
func (c *Client) Lacks() string {
	var out []string
	for t := range xdstype.Type(xdstype.NumStandard) {
		s := &c.types[t]
		switch {
		case !s.open:
		case !s.begun:
			out = append(out, fmt.Sprintf("any answer of %s", t))
		case s.names != nil:
			if missing := s.names.beyond(s.have); len(missing) > 0 {
				out = append(out, fmt.Sprintf("%d of %s such as %s", len(missing), t, missing[0]))
			}
		}
	}
	return strings.Join(out, ", ")
}

// beyond returns the names without a resource in s.
func (n *names) beyond(s *set) (out []string) {
	has := map[string]bool{}
	for _, r := range s.list {
		has[r.Name] = true
	}
	for _, name := range n.list {
		if !has[name] {
			out = append(out, name)
		}
	}
	return out
}

// Destinations are the endpoint resources that a client subscribes to. Other goroutines may use them.
type Destinations struct{ names *names }

// Destinations returns the present ones.
func (c *Client) Destinations() Destinations { return Destinations{c.types[xdstype.Endpoint].names} }

// Of reports whether they include the endpoints of a host, or, with subsets, of one of its subsets. Names of endpoint
// resources end with the host, as Istio makes them.
func (d Destinations) Of(host string, subsets bool) bool {
	end := "||" + host
	if subsets {
		end = "|" + host
	}
	return d.names != nil && slices.ContainsFunc(d.names.list,
		func(name string) bool { return strings.HasSuffix(name, end) })
}
