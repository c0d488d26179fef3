package sidecar

import (
	"slices"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// Kind is the kind of a client.
type Kind int

// Kinds of clients. Sidecars and gateways behave like Envoy, proxyless clients like grpc-go.
const (
	Sidecar Kind = iota
	Gateway
	Proxyless
	Kinds int = iota
)

func (k Kind) String() string { return [...]string{"sidecar", "gateway", "proxyless"}[k] }

// Spec describes a client.
type Spec struct {
	Kind Kind
	// Node is the encoded node.
	Node []byte
	// Delta selects the incremental variant of xDS; proxyless clients do not support it.
	Delta bool
	// Listeners are the names that a proxyless client asks for.
	Listeners []string
}

// Client is the xDS state machine of one proxy or proxyless client, without its connection. Not safe for concurrent
// use.
type Client struct {
	// Immutable after NewClient.
	table *Table
	spec  Spec

	types [xdstype.NumStandard]subscription
	// warming are the endpoint resources that changed clusters wait for, as sorted numbers of names.
	warming []uint32
	// held is the ACK of clusters, or on a new stream the first request for them, which waits until no cluster is
	// warming.
	held *Request
	// ready says that the client has had everything it asked for on this stream, back that it had on an earlier one.
	ready, back bool
	// refuse tells for each type whether to refuse its next response after the first.
	refuse [xdstype.NumStandard]bool
}

// subscription is the client's state for one type.
type subscription struct {
	open     bool
	begun    bool   // answered at least once, on any stream
	answered bool   // on this stream
	again    bool   // the next response answers a changed subscription or a refusal
	names    *names // nil means all
	have     *set
	version  string
	nonce    string
}

// Receipt describes what one response told a client.
type Receipt struct {
	// Type is meaningless unless Known: otherwise the client did not ask for the type.
	Type  xdstype.Type
	Known bool
	Bytes int
	// Resources counts those in the response. Useless of them, with UselessBytes, were equal to what the client had,
	// without one of the protocol's reasons to send them.
	Resources, Useless, UselessBytes int
	// Marks are the numbers of changes that new resources carry. Lost are those that the replaced resources carried and
	// none does now.
	Marks, Lost []int
	// Ready says that with this response the client has everything that it asked for, for the first time on this
	// stream. A client that already had everything before the stream is ready with the first response.
	Ready bool
	// Refused says that the client refused the response.
	Refused bool
}

// NewClient returns a client without any resources.
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

// form returns how the client interprets resources.
func (c *Client) form() form { return form{delta: c.spec.Delta, deep: c.spec.Kind == Proxyless} }

// Refuse makes the client refuse the next response of a type, unless it is the first of a stream.
func (c *Client) Refuse(t xdstype.Type) { c.refuse[t] = true }

// Begin returns the first requests of a stream: for everything that the client subscribed to before, with what it has.
// While clusters wait for their endpoints it sends no request for clusters, as Envoy does.
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

// request returns a request that names everything subscribed to.
func (c *Client) request(t xdstype.Type) Request {
	r := Request{Type: t, message: wire.Request{TypeURL: t.URL(), Delta: c.spec.Delta}}
	if n := c.types[t].names; n != nil {
		r.message.Names = n.encoded
	}
	return r
}

// answer returns an ACK, or a NACK with the refusal's text.
func (c *Client) answer(t xdstype.Type, refusal string) Request {
	s := &c.types[t]
	m := wire.Request{TypeURL: t.URL(), Delta: c.spec.Delta, Version: s.version, Nonce: s.nonce, Refusal: refusal}
	if !c.spec.Delta && s.names != nil {
		m.Names = s.names.encoded
	}
	return Request{Type: t, message: m}
}

// Take processes a response, and returns the requests to send.
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

// judge counts the useless resources of a response. Answers to a new stream, to a changed subscription or to a refusal
// never count, nor do endpoints that a cluster waits for, nor what a complete response repeats beside something new.
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

// follow returns the requests that follow a response of a known type.
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

// resolve subscribes to what a proxyless client finds in resources of a type: routes in listeners, clusters in routes,
// endpoints in clusters.
func (c *Client) resolve(t xdstype.Type) []Request {
	if t == xdstype.Endpoint {
		return nil
	}
	return c.subscribe(usedBy(t), c.table.uses(c.types[t].have), false)
}

// clusters processes a response with clusters: new and changed ones wait for their endpoints, and the ACK waits for
// these.
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

// subtract returns the sorted numbers of from that are not in others.
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

// within returns the sorted numbers of list that are also in others, without duplicates.
func within(list, others []uint32) (out []uint32) {
	for i, n := range list {
		if _, ok := slices.BinarySearch(others, n); ok && (i == 0 || list[i-1] != n) {
			out = append(out, n)
		}
	}
	return out
}

// warm appends to out what waited until all clusters were warm, if they are now: the ACK, and the first request for
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
