package sidecar

// Client is the xDS side of one Envoy, without its connection. It is not for use by several goroutines.
type Client struct {
	// Immutable after NewClient.
	table *Table
	delta bool
	node  []byte

	types [Types]subscription
	// warming are the endpoints that changed clusters wait for.
	warming map[string]bool
	// held is the ACK of the clusters, until none is warming.
	held *Request
	// ready: it has had all that it asked for, on this stream; back: it had on an earlier one.
	ready, back bool
	// refuse says which types' next response after the first is refused.
	refuse [Types]bool
}

// subscription is what a client knows of one type.
type subscription struct {
	open     bool
	answered bool   // on this stream
	again    bool   // the next response answers a changed subscription or a refusal
	names    *names // nil is all
	have     set
	version  string
	nonce    string
}

// Receipt is what one response told a client.
type Receipt struct {
	// Type is meaningless where Known is false: a type that the client did not ask for.
	Type  Type
	Known bool
	Bytes int
	// Resources came, of which Useless, of UselessBytes, were equal to what the client had, and none of protocol's reasons to send them held.
	Resources, Useless, UselessBytes int
	// Marks are the numbers of the changes that new resources tell of.
	Marks []int
	// Ready says that with this response the client has all that it asked for, for the first time on this stream; a client that
	// had it all before is ready with the first response.
	Ready bool
	// Refused says that the client took nothing.
	Refused bool
}

// NewClient is a client that has nothing; node is its encoded node.
func NewClient(t *Table, delta bool, node []byte) *Client {
	return &Client{table: t, delta: delta, node: node, warming: map[string]bool{}}
}

// Refuse lets the client refuse the next response of a type, unless it is the first of a stream.
func (c *Client) Refuse(t Type) { c.refuse[t] = true }

// Begin is what the client sends first on a stream: all that it subscribed to before, with what it has.
func (c *Client) Begin() []Request {
	c.held, c.ready, c.back = nil, false, c.back || c.ready
	clear(c.warming)
	c.types[Cluster].open = true
	var out []Request
	for t := range Type(Types) {
		s := &c.types[t]
		s.answered, s.again, s.nonce = false, true, ""
		if !s.open {
			continue
		}
		r := c.request(t)
		r.version = s.version
		if c.delta {
			r.initial = s.have
		}
		if len(out) == 0 {
			r.node = c.node
		}
		out = append(out, r)
	}
	return out
}

// request begins a request that names all that is subscribed to.
func (c *Client) request(t Type) Request {
	s := &c.types[t]
	r := Request{Type: t, url: t.URL(), delta: c.delta}
	if s.names != nil {
		r.names = s.names.encoded
	}
	return r
}

// answer is an ACK, or the refusal of a response.
func (c *Client) answer(t Type, refusal string) Request {
	s := &c.types[t]
	r := Request{Type: t, url: t.URL(), delta: c.delta, version: s.version, nonce: s.nonce, refusal: refusal}
	if !c.delta && s.names != nil {
		r.names = s.names.encoded
	}
	return r
}

// Take takes a response, and says what the client sends then.
func (c *Client) Take(r *Response) (Receipt, []Request) {
	receipt := Receipt{Type: r.Type, Known: r.Known && c.types[r.Type].open, Bytes: r.Bytes, Resources: len(r.resources)}
	if !receipt.Known {
		return receipt, []Request{{url: r.url, delta: c.delta, version: r.version, nonce: r.nonce}}
	}
	s := &c.types[r.Type]
	if c.refuse[r.Type] && s.answered {
		c.refuse[r.Type], s.again, s.nonce, receipt.Refused = false, true, r.nonce, true
		return receipt, []Request{c.answer(r.Type, "refused by the load test")}
	}
	s.version, s.nonce = r.version, r.nonce
	root := !c.delta && (r.Type == Cluster || r.Type == Listener)
	var ch change
	if root {
		ch = replace(s.have, r.resources)
	} else {
		ch = update(s.have, r.resources, r.removed)
	}
	s.have = ch.next
	c.judge(&receipt, ch, root)
	s.answered, s.again = true, false
	for _, f := range ch.fresh {
		if f.Mark > 0 {
			receipt.Marks = append(receipt.Marks, f.Mark)
		}
	}
	out := c.follow(r, ch)
	if !c.ready && c.complete() {
		c.ready, receipt.Ready = true, true
	}
	return receipt, out
}

// judge counts what was useless of a response. What answers a new stream, a changed subscription or a refusal never is, nor endpoints that a
// cluster waits for, nor what a root repeats beside something new.
func (c *Client) judge(receipt *Receipt, ch change, root bool) {
	s := &c.types[receipt.Type]
	if !s.answered || s.again || root && len(ch.fresh)+ch.gone > 0 {
		return
	}
	for _, r := range ch.same {
		if receipt.Type == Endpoint && c.warming[r.Name] {
			continue
		}
		receipt.Useless++
		receipt.UselessBytes += r.Size
	}
}

// follow is what a response of a type that the client knows leads to.
func (c *Client) follow(r *Response, ch change) []Request {
	switch r.Type {
	case Cluster:
		return c.clusters(ch)
	case Endpoint:
		for _, e := range r.resources {
			delete(c.warming, e.Name)
		}
		for _, name := range r.removed {
			delete(c.warming, name)
		}
		return c.warm([]Request{c.answer(Endpoint, "")})
	case Listener:
		out := c.subscribe(Route, c.table.uses(ch.next), false)
		return append(out, c.answer(Listener, ""))
	}
	return []Request{c.answer(r.Type, "")}
}

// clusters follows a response of clusters: new and changed ones wait for their endpoints, and the ACK waits for them.
func (c *Client) clusters(ch change) []Request {
	for _, r := range ch.fresh {
		for _, name := range r.uses {
			c.warming[name] = true
		}
	}
	uses := c.table.uses(ch.next)
	for name := range c.warming {
		if uses == nil || !uses.has[name] {
			delete(c.warming, name)
		}
	}
	out := c.subscribe(Endpoint, uses, len(c.warming) > 0)
	ack := c.answer(Cluster, "")
	c.held = &ack
	return c.warm(out)
}

// warm adds to out what waited for the clusters to be warm, if they are: their ACK, and the first request for listeners.
func (c *Client) warm(out []Request) []Request {
	if c.held == nil || len(c.warming) > 0 {
		return out
	}
	out = append(out, *c.held)
	c.held = nil
	if l := &c.types[Listener]; !l.open {
		l.open, l.again = true, true
		out = append(out, c.request(Listener))
	}
	return out
}

// subscribe changes the names of a type; repeat asks again for the same, as the State-of-the-World protocol wants it for changed clusters.
func (c *Client) subscribe(t Type, n *names, repeat bool) []Request {
	s := &c.types[t]
	old := s.names
	if n == nil && old == nil || n == old && (c.delta || !repeat) {
		return nil
	}
	if n == nil {
		n = &names{}
	}
	s.names = n
	if n != old {
		s.have = s.have.only(n)
	}
	if c.delta {
		return c.difference(t, old, n)
	}
	s.again = true
	s.open = true
	return []Request{c.answer(t, "")}
}

// difference is the request of the incremental protocol that makes n of old.
func (c *Client) difference(t Type, old, n *names) []Request {
	s := &c.types[t]
	r := Request{Type: t, url: t.URL(), delta: true}
	if old == nil {
		r.names = n.encoded
		s.again = true
	} else {
		for _, name := range n.list {
			if !old.has[name] {
				r.names = appendString(r.names, requestNames, name)
				s.again = true
			}
		}
		for _, name := range old.list {
			if !n.has[name] {
				r.names = appendString(r.names, requestUnsubscribe, name)
			}
		}
	}
	s.open = true
	if len(r.names) == 0 {
		return nil
	}
	return []Request{r}
}

// complete reports whether the client has all that it asked for. One that comes back with everything does once it is answered at all: a
// server need not answer types of which the client has the present version.
func (c *Client) complete() bool {
	if c.back {
		return c.held == nil
	}
	listeners, routes := &c.types[Listener], &c.types[Route]
	if c.held != nil || !c.types[Cluster].answered || !listeners.answered {
		return false
	}
	return routes.names == nil || len(routes.have) >= len(routes.names.list)
}
