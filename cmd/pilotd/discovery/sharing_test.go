package discovery

import (
	"slices"
	"testing"

	"github.com/pilotd/pilotd/xdstype"
)

// TestEqualProxiesShare is invariant I2: proxies of one class with equal subscriptions have the same bytes, and one
// response is assembled for all of them that speak the same protocol, whatever the change. (What answers a client's own
// request, for a new name say, is its own.)
func TestEqualProxiesShare(t *testing.T) {
	inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
		const each = 5
		for i := range 2 * each {
			r.connect(workload("shop", i), i%2 == 0)
		}
		r.converge()
		r.checkEqual(t)
		for _, change := range []struct {
			name  string
			apply func()
			types []string
		}{
			{"a route", func() { r.apply(virtualService("web", "web", hostOf("cart"))) }, []string{xdstype.RouteURL}},
			{"an endpoint", func() { r.apply(slice("web", "10.10.0.2")) }, []string{xdstype.EndpointURL}},
			{"a policy", func() { r.apply(rule("cart", hostOf("cart"), idle(3))) },
				[]string{xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL}},
		} {
			sent, assembled := r.responsesMade()
			marks := r.marks()
			change.apply()
			r.converge()
			r.checkEqual(t)
			r.checkSameResponses(t, marks)
			nowSent, nowAssembled := r.responsesMade()
			made := int(nowAssembled - assembled)
			if want := 2 * each * made / 2; made < 2*len(change.types) || int(nowSent-sent) != want {
				t.Errorf("%s: %d responses were made, %d sent; want one for each protocol and step, sent to %d each",
					change.name, made, nowSent-sent, each)
			}
			for _, c := range r.clients {
				for _, url := range change.types {
					if !slices.ContainsFunc(c.responses(marks[c.id]), func(x response) bool { return x.url == url }) {
						t.Errorf("%s: client %d got no %s", change.name, c.id, kindOf(url))
					}
				}
			}
		}
	})
}

// responsesMade counts the responses for each client, and those that were made.
func (r *running) responsesMade() (sent, assembled uint64) {
	for _, f := range r.server.Shards.Stats() {
		sent += f.Sent
		assembled += f.Assembled
	}
	return sent, assembled
}

// marks returns how many responses each client has got.
func (r *running) marks() map[uint64]int {
	out := map[uint64]int{}
	for _, c := range r.clients {
		out[c.id] = c.count()
	}
	return out
}

// checkEqual compares what all clients have, whatever their protocol.
func (r *running) checkEqual(t *testing.T) {
	t.Helper()
	want := r.clients[0].content()
	for _, c := range r.clients[1:] {
		if d := difference(c.content(), want); d != "" {
			t.Errorf("clients %d and %d: %s", r.clients[0].id, c.id, d)
		}
	}
}

// checkSameResponses compares the responses since the marks, byte by byte, of the clients of each protocol.
func (r *running) checkSameResponses(t *testing.T, marks map[uint64]int) {
	t.Helper()
	sums := func(c *client) (out []string) {
		for _, x := range c.responses(marks[c.id]) {
			out = append(out, x.String()+" "+string(x.sum[:]))
		}
		return out
	}
	first := map[bool]*client{}
	for _, c := range r.clients {
		if first[c.delta] == nil {
			first[c.delta] = c
		}
		if !slices.Equal(sums(c), sums(first[c.delta])) {
			t.Errorf("client %d got %v, client %d got %v, or with other bytes", first[c.delta].id,
				first[c.delta].responses(marks[first[c.delta].id]), c.id, c.responses(marks[c.id]))
		}
	}
}
