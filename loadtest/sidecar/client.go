package sidecar

import (
	"slices"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// Kind is what a client is.
type Kind int

// The kinds of clients. Sidecars and gateways are Envoys; proxyless ones are gRPC's own clients.
const (
	Sidecar Kind = iota
	Gateway
	Proxyless
	Kinds int = iota
)

func (k Kind) String() string { return [...]string{"sidecar", "gateway", "proxyless"}[k] }

// Spec is what a client is and says of itself.
type Spec struct {
	Kind Kind
	// Node is encoded.
	Node []byte
	// Delta chooses the incremental protocol. Proxyless clients do not speak it.
	Delta bool
	// Listeners are the names that a proxyless client asks for.
	Listeners []string
}

// Client is the xDS side of one proxy or proxyless client, without its connection. It is not for use by several
// goroutines.
type Client struct {
	// Immutable after NewClient.
	table *Table
	spec  Spec

	types [xdstype.NumStandard]subscription
	// warming are the endpoints that changed clusters wait for: numbers of names, sorted.
	warming []uint32
	// held is the ACK of the clusters, or on a new stream the first request for them, until none is warming.
	held *Request
	// ready: it has had all that it asked for, on this stream; back: it had on an earlier one.
	ready, back bool
	// refuse says which types' next response after the first is refused.
	refuse [xdstype.NumStandard]bool
}

// subscription is what a client knows of one type.
type subscription struct {
	open     bool
	begun    bool   // it was answered once, on whatever stream
	answered bool   // on this stream
	again    bool   // the next response answers a changed subscription or a refusal
	names    *names // nil is all
	have     *set
	version  string
	nonce    string
}

// Receipt is what one response told a client.
type Receipt struct {
	// Type is meaningless where Known is false: a type that the client did not ask for.
	Type  xdstype.Type
	Known bool
	Bytes int
	// Resources came, of which Useless, of UselessBytes, were equal to what the client had, and none of protocol's
	// reasons to send them held.
	Resources, Useless, UselessBytes int
	// Marks are the numbers of the changes that new resources tell of, Lost those that the resources before them told
	// of and nothing does now.
	Marks, Lost []int
	// Ready says that with this response the client has all that it asked for, for the first time on this stream; a
	// client that had it all before is ready with the first response.
	Ready bool
	// Refused says that the client took nothing.
	Refused bool
}

// NewClient returns a client that has nothing.
func NewClient(t *Table, s Spec) *Client {
	s.Delta = s.Delta && s.Kind != Proxyless
	c := &Client{table: t, spec: s}
	for i := range c.types {
		c.types[i].have = t.none
	}
	if s.Kind == Proxyless {
		c.types[xdstype.Listener].names = t.names(xdstype.Listener, s.Listeners)
	}
	return c
}

// form returns how the client reads resources.
func (c *Client) form() form { return form{delta: c.spec.Delta, deep: c.spec.Kind == Proxyless} }

// Refuse lets the client refuse the next response of a type, unless it is the first of a stream.
func (c *Client) Refuse(t xdstype.Type) { c.refuse[t] = true }

// Begin returns what the client sends first on a stream: all that it subscribed to before, with what it has. While
// clusters wait for their endpoints it does not ask for clusters.
func (c *Client) Begin() []Request {
	c.held, c.ready, c.back = nil, false, c.back || c.ready
	if c.spec.Kind == Proxyless {
		c.types[xdstype.Listener].open = true
	} else {
		c.types[xdstype.Cluster].open = true
	}
	var out []Request
	for t := range xdstype.Type(xdstype.NumStandard) {
		s := &c.types[t]
		s.answered, s.again, s.nonce = false, true, ""
		if !s.open {
			continue
		}
		r := c.request(t)
		r.message.Version = s.version
		if c.spec.Delta {
			r.initial = s.have.list
		}
		if t == xdstype.Cluster && len(c.warming) > 0 {
			c.held = &r
			continue
		}
		if len(out) == 0 {
			r.message.Node = c.spec.Node
		}
		out = append(out, r)
	}
	return out
}

// request begins a request that names all that is subscribed to.
func (c *Client) request(t xdstype.Type) Request {
	r := Request{Type: t, message: wire.Request{TypeURL: t.URL(), Delta: c.spec.Delta}}
	if n := c.types[t].names; n != nil {
		r.message.Names = n.encoded
	}
	return r
}

// answer returns an ACK, or the refusal of a response.
func (c *Client) answer(t xdstype.Type, refusal string) Request {
	s := &c.types[t]
	m := wire.Request{TypeURL: t.URL(), Delta: c.spec.Delta, Version: s.version, Nonce: s.nonce, Refusal: refusal}
	if !c.spec.Delta && s.names != nil {
		m.Names = s.names.encoded
	}
	return Request{Type: t, message: m}
}

// Take takes a response, and says what the client sends then.
func (c *Client) Take(r *Response) (Receipt, []Request) {
	receipt := Receipt{Type: r.Type, Known: r.Known && c.types[r.Type].open, Bytes: r.Bytes,
		Resources: len(r.resources)}
	if !receipt.Known {
		return receipt, []Request{{message: wire.Request{TypeURL: r.url, Delta: c.spec.Delta,
			Version: r.version, Nonce: r.nonce}}}
	}
	s := &c.types[r.Type]
	if c.refuse[r.Type] && s.answered {
		c.refuse[r.Type], s.again, s.nonce, receipt.Refused = false, true, r.nonce, true
		return receipt, []Request{c.answer(r.Type, "refused by the load test")}
	}
	s.version, s.nonce = r.version, r.nonce
	root := !c.spec.Delta && r.Type.Row().Complete
	removed := c.table.numbered(r.Type, r.removed)
	var ch change
	if root {
		ch = c.table.replace(s.have, r.resources)
	} else {
		ch = c.table.update(s.have, r.resources, removed)
	}
	s.have = ch.next
	c.judge(&receipt, &ch, root)
	s.answered, s.begun, s.again = true, true, false
	receipt.Marks, receipt.Lost = ch.marks, ch.lost
	out := c.follow(r, &ch, removed)
	if !c.ready && c.complete() {
		c.ready, receipt.Ready = true, true
	}
	return receipt, out
}

// judge counts what was useless of a response. What answers a new stream, a changed subscription or a refusal never is,
// nor endpoints that a cluster waits for, nor what a root repeats beside something new.
func (c *Client) judge(receipt *Receipt, ch *change, root bool) {
	s := &c.types[receipt.Type]
	if !s.answered || s.again || root && len(ch.fresh)+ch.gone > 0 {
		return
	}
	for _, r := range ch.same {
		if receipt.Type == xdstype.Endpoint {
			if _, waiting := slices.BinarySearch(c.warming, r.number); waiting {
				continue
			}
		}
		receipt.Useless++
		receipt.UselessBytes += r.Size
	}
}

// follow returns what a response of a type that the client knows leads to.
func (c *Client) follow(r *Response, ch *change, removed []uint32) []Request {
	if c.spec.Kind == Proxyless {
		return append([]Request{c.answer(r.Type, "")}, c.resolve(r.Type)...)
	}
	switch r.Type {
	case xdstype.Cluster:
		return c.clusters(ch)
	case xdstype.Endpoint:
		if len(c.warming) > 0 {
			for _, e := range r.resources {
				removed = append(removed, e.number)
			}
			slices.Sort(removed)
			c.warming = subtract(c.warming, removed)
		}
		return c.warm([]Request{c.answer(xdstype.Endpoint, "")})
	case xdstype.Listener:
		out := c.subscribe(xdstype.Route, c.table.uses(ch.next), false)
		return append(out, c.answer(xdstype.Listener, ""))
	}
	return []Request{c.answer(r.Type, "")}
}

// resolve asks for what the resources of a type lead a proxyless client to: listeners to routes, routes to clusters,
// clusters to endpoints.
func (c *Client) resolve(t xdstype.Type) []Request {
	if t == xdstype.Endpoint {
		return nil
	}
	return c.subscribe(usedBy(t), c.table.uses(c.types[t].have), false)
}

// clusters follows a response of clusters: new and changed ones wait for their endpoints, and the ACK waits for them.
func (c *Client) clusters(ch *change) []Request {
	uses := c.table.uses(ch.next)
	switch {
	case uses == nil:
		c.warming = nil
	case len(ch.fresh) == len(ch.next.list):
		c.warming = uses.numbers
	default:
		var fresh []uint32
		for _, r := range ch.fresh {
			fresh = append(fresh, r.used...)
		}
		c.warming = within(slices.Sorted(slices.Values(append(fresh, c.warming...))), uses.numbers)
	}
	out := c.subscribe(xdstype.Endpoint, uses, len(c.warming) > 0)
	ack := c.answer(xdstype.Cluster, "")
	c.held = &ack
	return c.warm(out)
}

// subtract returns sorted numbers without others, sorted too.
func subtract(from, others []uint32) (out []uint32) {
	for _, n := range from {
		for len(others) > 0 && others[0] < n {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != n {
			out = append(out, n)
		}
	}
	return out
}

// within returns those of sorted numbers that are among others, each once.
func within(list, others []uint32) (out []uint32) {
	for i, n := range list {
		if _, ok := slices.BinarySearch(others, n); ok && (i == 0 || list[i-1] != n) {
			out = append(out, n)
		}
	}
	return out
}

// warm adds to out what waited for the clusters to be warm, if they are: their ACK, and the first request for
// listeners.
func (c *Client) warm(out []Request) []Request {
	if c.held == nil || len(c.warming) > 0 {
		return out
	}
	out = append(out, *c.held)
	c.held = nil
	if l := &c.types[xdstype.Listener]; !l.open {
		l.open, l.again = true, true
		out = append(out, c.request(xdstype.Listener))
	}
	return out
}
