package discovery

import (
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// TestOrderOfResponses is invariant I7: whatever a change does to the services, each client gets clusters, then the
// endpoints of the changed clusters, listeners, routes, and what goes last; and a State-of-the-World response of a root
// type is complete.
func TestOrderOfResponses(t *testing.T) {
	late := []ingest.Event{service("late", "10.96.0.9", 9000), pod("pod-10.10.0.9", "late", "10.10.0.9"),
		slice("late", "10.10.0.9"), virtualService("web", "web", hostOf("late"))}
	replaced := []ingest.Event{gone(service("late", "")), gone(slice("late")), service("next", "10.96.0.10", 9000),
		slice("next", "10.10.0.9"), virtualService("web", "web", hostOf("next"))}
	removed := []ingest.Event{gone(service("next", "")), gone(slice("next")),
		virtualService("web", "web", hostOf("web"))}
	policy := []ingest.Event{rule("cart", hostOf("cart"), idle(3)), virtualService("web", "web", hostOf("cart"))}
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			r.clients = append(r.clients, r.warming(workload("shop", 0), delta))
			r.converge()
			c := r.clients[0]
			checkOrder(t, "connecting", c, c.responses(0))
			for _, change := range []struct {
				name   string
				events []ingest.Event
			}{{"an added service", late}, {"a replaced service", replaced}, {"a removed service", removed},
				{"a changed policy", policy}} {
				mark, before := c.count(), keysOf(c, "Cluster ")
				r.apply(change.events...)
				r.converge()
				got := c.responses(mark)
				checkOrder(t, change.name, c, got)
				checkRemovals(t, change.name, before, keysOf(c, "Cluster "), got)
			}
			if wrong := c.complaints(); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	})
}

// warming returns a client that ACKs clusters when they are warm.
func (r *running) warming(n *corev3.Node, delta bool) *client {
	r.t.Helper()
	r.nextID++
	c, err := newClient(r.server, r.nextID, n, delta)
	if err != nil {
		r.t.Fatal(err)
	}
	c.warms = true
	if err := c.begin(ads.Request{Delta: delta, TypeURL: xdstype.ClusterURL, Node: n}); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// keysOf returns the names of what the client has of a type.
func keysOf(c *client, kind string) map[string]bool {
	out := map[string]bool{}
	for k := range c.content() {
		if name, ok := strings.CutPrefix(k, kind); ok {
			out[name] = true
		}
	}
	return out
}

// checkOrder sees to it that each changed cluster has its endpoints after it and that no changed route precedes them,
// nor changed listeners their clusters. Listeners need not wait for the endpoints of a new cluster, which the client
// has to ask for.
func checkOrder(t *testing.T, when string, c *client, got []response) {
	t.Helper()
	last := func(url string) int {
		for i := len(got) - 1; i >= 0; i-- {
			if got[i].url == url && len(got[i].fresh) > 0 {
				return i
			}
		}
		return -1
	}
	firstOf := func(url string) int {
		i := slices.IndexFunc(got, func(x response) bool { return x.url == url && len(x.fresh) > 0 })
		if i < 0 {
			return len(got)
		}
		return i
	}
	if last(xdstype.ClusterURL) > firstOf(xdstype.ListenerURL) ||
		last(xdstype.EndpointURL) > firstOf(xdstype.RouteURL) ||
		last(xdstype.ListenerURL) > firstOf(xdstype.RouteURL) {
		t.Errorf("%s: out of order: %v", when, got)
	}
	for i, x := range got {
		for _, name := range x.fresh {
			if x.url != xdstype.ClusterURL || !slices.Contains(c.asked[xdstype.EndpointURL], name) {
				continue
			}
			if !slices.ContainsFunc(
				got[i:],
				func(y response) bool { return y.url == xdstype.EndpointURL && y.has(name) },
			) {
				t.Errorf("%s: no endpoints follow %s: %v", when, name, got)
			}
		}
	}
	if last(xdstype.EndpointURL) >= 0 && firstOf(xdstype.EndpointURL) < firstOf(xdstype.ClusterURL) &&
		firstOf(xdstype.ClusterURL) < len(got) {
		t.Errorf("%s: endpoints precede their clusters: %v", when, got)
	}
}

// checkRemovals sees to it that clusters go last, after everything that named them: by name in Delta; in
// State-of-the-World by a response without them, after one with old and new together.
func checkRemovals(t *testing.T, when string, before, after map[string]bool, got []response) {
	t.Helper()
	for name := range before {
		if after[name] {
			continue
		}
		for i, x := range got {
			if x.url == xdstype.RouteURL &&
				slices.ContainsFunc(got[:i], func(y response) bool { return y.drops(name) }) {
				t.Errorf("%s: %s went before the routes: %v", when, name, got)
			}
		}
		if !slices.ContainsFunc(got, func(y response) bool { return y.drops(name) }) {
			t.Errorf("%s: %s never went: %v", when, name, got)
		}
	}
}

// drops reports whether the response takes a cluster away.
func (r response) drops(cluster string) bool {
	if r.url != xdstype.ClusterURL {
		return false
	}
	return r.version != "" && !r.has(cluster) || slices.Contains(r.removed, cluster)
}
