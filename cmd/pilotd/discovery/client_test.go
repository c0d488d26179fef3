package discovery

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// client is a proxy in memory: it asks for clusters and listeners, then for the endpoints and routes that these name,
// ACKs everything, and remembers what it has. Its goroutine stands for the network and the proxy.
type client struct {
	id     uint64
	proxy  *proxy.Proxy
	node   *corev3.Node
	delta  bool
	server *Server
	inbox  chan []byte
	done   chan struct{}
	open   atomic.Int64 // responses that are on their way or being answered

	mu sync.Mutex
	// Guarded by mu.
	has     map[string]map[string]string // type URL, name: bytes
	asked   map[string][]string          // EDS and RDS names
	last    map[string][2]string         // version and nonce of the last response of a type, State-of-the-World
	invalid []string                     // what ValidateAll said
	useless []string                     // resources that came again as they were
	history []string                     // the last messages, for reports
	lastCDS map[string]bool              // clusters that came since the last EDS: their endpoints may come again
	dropped map[string]bool              // type URL and name of what it unsubscribed from since it was at rest
	got     []response                   // all responses
	slow    bool                         // what it has to say waits in outbox until the test lets it go
	outbox  []ads.Request
	fresh   []string     // what the response that is being read brings anew
	warms   bool         // it ACKs clusters when their endpoints have come, as Envoy does
	warming *ads.Request // the ACK that waits for that
	watcher func(url string)
}

func newClient(s *Server, id uint64, node *corev3.Node, delta bool) (*client, error) {
	p, err := proxy.Accept(node, proxy.Peer{})
	if err != nil {
		return nil, err
	}
	return &client{id: id, proxy: p, node: node, delta: delta, server: s, inbox: make(chan []byte, 4096),
		done: make(chan struct{}),
		has:  map[string]map[string]string{}, asked: map[string][]string{}, last: map[string][2]string{},
		lastCDS: map[string]bool{}, dropped: map[string]bool{}}, nil
}

// begin opens the stream with its first request.
func (c *client) begin(first ads.Request) error {
	go c.run()
	return c.server.Shards.Attach(c, c.proxy, first)
}

// ID implements shard.Stream.
func (c *client) ID() uint64 { return c.id }

// Send implements shard.Stream.
func (c *client) Send(_ string, r *encodecache.Response) {
	c.open.Add(1)
	c.inbox <- r.Buffers().Materialize()
}

// Close implements shard.Stream.
func (c *client) Close(err error) { panic(fmt.Sprintf("client %d was closed: %v", c.id, err)) }

// leave disconnects.
func (c *client) leave() {
	c.server.Shards.Detach(c.id)
	close(c.done)
}

func (c *client) run() {
	for {
		select {
		case b := <-c.inbox:
			requests := c.receive(b)
			c.tellWatcher()
			for _, r := range c.mayAsk(requests) {
				c.ask(r)
			}
			c.open.Add(-1)
		case <-c.done:
			return
		}
	}
}

func (c *client) ask(r ads.Request) {
	c.note("asks %s nonce %s +%v -%v names %d", kindOf(r.TypeURL), r.Nonce,
		slices.Collect(r.Subscribe.All()), slices.Collect(r.Unsubscribe.All()), r.Names.Len())
	c.server.Shards.Receive(c.id, r)
}

// receive takes a response and returns the requests that follow it: the ACK first.
func (c *client) receive(b []byte) []ads.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delta {
		return c.receiveDelta(b)
	}
	r := &discoveryv3.DiscoveryResponse{}
	if err := proto.Unmarshal(b, r); err != nil {
		panic(err)
	}
	root := r.TypeUrl == xdstype.ClusterURL || r.TypeUrl == xdstype.ListenerURL
	_, seen := c.has[r.TypeUrl]
	before := c.has[r.TypeUrl]
	if root || !seen {
		c.has[r.TypeUrl] = map[string]string{}
	}
	for _, a := range r.Resources {
		c.put(a, before, root)
	}
	c.tell(sotwResponse(r, b))
	c.last[r.TypeUrl] = [2]string{r.VersionInfo, r.Nonce}
	out := []ads.Request{{TypeURL: r.TypeUrl, Version: r.VersionInfo, Nonce: r.Nonce,
		Names: c.names(c.asked[r.TypeUrl])}}
	if r.TypeUrl == xdstype.ClusterURL && !seen {
		out = append(out, c.firstListeners()...)
	}
	return c.warm(append(out, c.follow(r.TypeUrl)...))
}

func (c *client) receiveDelta(b []byte) []ads.Request {
	r := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(b, r); err != nil {
		panic(err)
	}
	_, seen := c.has[r.TypeUrl]
	if !seen {
		c.has[r.TypeUrl] = map[string]string{}
	}
	for _, res := range r.Resources {
		c.put(res.Resource, c.has[r.TypeUrl], false)
	}
	for _, n := range r.RemovedResources {
		delete(c.has[r.TypeUrl], n)
	}
	c.tell(deltaResponse(r, b))
	out := []ads.Request{{Delta: true, TypeURL: r.TypeUrl, Nonce: r.Nonce}}
	if r.TypeUrl == xdstype.ClusterURL && !seen {
		out = append(out, c.firstListeners()...)
	}
	return c.warm(append(out, c.follow(r.TypeUrl)...))
}

// firstListeners asks for listeners and, if the agent beside the client answers DNS queries, in the same instant for
// the name table.
func (c *client) firstListeners() []ads.Request {
	out := []ads.Request{{Delta: c.delta, TypeURL: xdstype.ListenerURL}}
	if c.node.GetMetadata().GetFields()["DNS_CAPTURE"].GetBoolValue() {
		out = append(out, ads.Request{Delta: c.delta, TypeURL: xdstype.NameTableURL})
	}
	return out
}

// tell notes a response; the caller holds mu.
func (c *client) tell(r response) {
	r.fresh, c.fresh = c.fresh, nil
	c.got = append(c.got, r)
	c.history = append(c.history, fmt.Sprintf("gets %s nonce %s: %d, removed %v", kindOf(r.url), r.nonce, len(r.names),
		r.removed))
}

func (c *client) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, fmt.Sprintf(format, args...))
}

func (c *client) names(list []string) *ads.Names {
	if len(list) == 0 {
		return nil
	}
	return c.server.Names.Of(list)
}

// put takes one resource, checks it, and notes whether it repeats what the client has without one of the reasons that
// the protocol knows.
func (c *client) put(a *anypb.Any, before map[string]string, root bool) {
	m, err := a.UnmarshalNew()
	if err != nil {
		panic(err)
	}
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			c.invalid = append(c.invalid, err.Error())
		}
	}
	name := resourceName(m)
	if asked, ok := c.asked[a.TypeUrl]; ok && !slices.Contains(asked, name) {
		return // it was under way when the client lost interest
	}
	proof := !c.delta && len(c.got) == 0 // a new stream's first response
	if had, ok := before[name]; ok && had == string(a.Value) && !root && !proof &&
		!(a.TypeUrl == xdstype.EndpointURL && c.lastCDS[name]) && !c.subscribedAgain(a.TypeUrl, name) {
		c.useless = append(c.useless, a.TypeUrl+" "+name)
	}
	if before[name] != string(a.Value) {
		c.fresh = append(c.fresh, name)
	}
	switch a.TypeUrl {
	case xdstype.ClusterURL:
		if before[name] != string(a.Value) {
			c.lastCDS[name] = true
		}
	case xdstype.EndpointURL:
		delete(c.lastCDS, name)
	}
	c.has[a.TypeUrl][name] = string(a.Value)
}

// subscribedAgain reports whether a resource may come once more because the client has unsubscribed from it and
// subscribed to it again: a response that the server sent before it read either request crosses both, so the answer to
// the second one repeats it. That happens once for each time. The caller holds mu.
func (c *client) subscribedAgain(typeURL, name string) bool {
	key := typeURL + " " + name
	again := c.dropped[key]
	delete(c.dropped, key)
	return again
}

// follow asks for what the clusters or listeners name, if that is not what was asked for last.
func (c *client) follow(typeURL string) []ads.Request {
	next := map[string]string{xdstype.ClusterURL: xdstype.EndpointURL, xdstype.ListenerURL: xdstype.RouteURL}[typeURL]
	if next == "" {
		return nil
	}
	var names []string
	for _, b := range c.has[typeURL] {
		names = append(names, dependencies(typeURL, b)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	old := c.asked[next]
	if slices.Equal(names, old) {
		return nil
	}
	c.asked[next] = names
	for n := range c.has[next] {
		if !slices.Contains(names, n) {
			delete(c.has[next], n)
			c.dropped[next+" "+n] = true
		}
	}
	if !c.delta {
		return []ads.Request{{TypeURL: next, Version: c.last[next][0], Nonce: c.last[next][1], Names: c.names(names)}}
	}
	wants, had := c.names(names), c.names(old)
	table := c.server.Names
	return []ads.Request{{Delta: true, TypeURL: next, Subscribe: table.Minus(wants, had),
		Unsubscribe: table.Minus(had, wants)}}
}

// content returns a copy of what the client has: type and name to bytes.
func (c *client) content() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]string{}
	for t, m := range c.has {
		for n, b := range m {
			out[kindOf(t)+" "+n] = b
		}
	}
	return out
}

// complaints returns what was wrong with what the client got until now, when it is at rest: every request is answered.
func (c *client) complaints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.dropped)
	var out []string
	for _, i := range c.invalid {
		out = append(out, "invalid: "+i)
	}
	for _, u := range c.useless {
		out = append(out, "sent again as it was: "+u)
	}
	return out
}
