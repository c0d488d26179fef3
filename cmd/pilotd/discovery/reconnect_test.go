package discovery

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// again returns a client like c, on another server: it has what c has, and says so. warming is that its last stream
// broke while a cluster warmed.
func (r *running) again(c *client, warming bool) *client {
	r.t.Helper()
	r.nextID++
	next, err := newClient(r.server, r.nextID, c.node, c.delta)
	if err != nil {
		r.t.Fatal(err)
	}
	urls := []string{xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL}
	if warming {
		urls = []string{xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL}
	}
	var requests []ads.Request
	for _, url := range urls {
		next.has[url], next.asked[url] = maps.Clone(c.has[url]), slices.Clone(c.asked[url])
		requests = append(requests, c.firstRequest(url))
	}
	for url := range next.asked {
		if len(next.asked[url]) == 0 {
			delete(next.asked, url)
		}
	}
	requests[0].Node = c.node
	r.clients = append(r.clients, next)
	next.warms = true
	next.stall() // it asks for everything before it answers anything
	if err := next.begin(requests[0]); err != nil {
		r.t.Fatal(err)
	}
	for _, q := range requests[1:] {
		next.ask(q)
	}
	synctest.Wait()
	next.resume()
	synctest.Wait()
	return next
}

// firstRequest returns what the client says of a type when it connects again.
func (c *client) firstRequest(url string) ads.Request {
	q := ads.Request{Delta: c.delta, TypeURL: url}
	if !c.delta {
		q.Version, q.Names = c.last[url][0], c.names(c.asked[url])
		return q
	}
	initial := map[string]string{}
	for _, x := range c.got {
		for name, v := range x.versions {
			if _, has := c.has[url][name]; x.url == url && has {
				initial[name] = v
			}
		}
	}
	q.Subscribe, q.Initial = c.names(c.asked[url]), c.server.Names.VersionsOf(initial)
	return q
}

// TestReconnectResendsNothing has clients move to a new server with the same inputs: what they prove to have does not
// come again, but for the one response that a stream needs in order to count (protocol.md 2): an empty Delta one, or
// one State-of-the-World resource of a type that may be answered in part.
func TestReconnectResendsNothing(t *testing.T) {
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			r.join(workload("shop", 0), delta)
			r.join(router(), delta)
			next := startRun(t)
			defer next.stop()
			next.server.Store.Apply(sampleMesh())
			for _, old := range r.clients {
				c := next.again(old, false)
				got := c.responses(0)
				url, names := xdstype.EndpointURL, 1
				if delta {
					url, names = xdstype.ClusterURL, 0
				}
				if len(got) != 1 || got[0].url != url || len(got[0].fresh)+len(got[0].removed) > 0 ||
					len(got[0].names) != names {
					t.Errorf("%s got %v", c.proxy.ID, got)
				}
				next.converge()
				if d := difference(c.content(), old.content()); d != "" || len(c.complaints()) > 0 {
					t.Error(d, c.complaints())
				}
				mark := c.count()
				next.apply(virtualService("web", "web", hostOf("cart")), gatewayRoute("cart"))
				if got := c.responses(mark); len(got) != 1 || got[0].url != xdstype.RouteURL {
					t.Errorf("%s got %v for one route", c.proxy.ID, got)
				}
				next.apply(sampleMesh()...)
			}
		})
	})
}

// TestReconnectGetsTheDifference has clients move to a server that knows of changes that they do not.
func TestReconnectGetsTheDifference(t *testing.T) {
	changes := []ingest.Event{service("late", "10.96.0.9", 9000), gone(service("other", "")),
		rule("cart", hostOf("cart"), idle(3)), virtualService("web", "web", hostOf("cart"))}
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			old := r.join(workload("shop", 0), delta)
			next := startRun(t)
			defer next.stop()
			next.server.Store.Apply(append(sampleMesh(), changes...))
			c := next.again(old, false)
			next.converge()
			got := c.responses(0)
			if d := difference(c.content(), next.join(workload("shop", 1), delta).content()); d != "" {
				t.Errorf("%s; after %v", d, got)
			}
			checkOrder(t, "reconnecting", c, got)
			for _, x := range got {
				if delta && x.url != xdstype.EndpointURL && len(x.fresh) != len(x.names) {
					t.Errorf("%v has what is known", x)
				}
			}
		})
	})
}

// TestReconnectWhileWarming is protocol.md 1: a client whose stream broke between a changed cluster and its endpoints
// asks for endpoints alone, and gets all of them, whatever versions it reports.
func TestReconnectWhileWarming(t *testing.T) {
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			old := r.join(workload("shop", 0), delta)
			next := startRun(t)
			defer next.stop()
			next.server.Store.Apply(sampleMesh())
			c := next.again(old, true)
			got := c.responses(0)
			if len(got) == 0 || got[0].url != xdstype.EndpointURL ||
				!slices.Equal(slices.Sorted(slices.Values(got[0].names)), old.asked[xdstype.EndpointURL]) {
				t.Errorf("got %v, want the endpoints of %v", got, old.asked[xdstype.EndpointURL])
			}
		})
	})
}
