package discovery

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/xdstype"
)

// TestNothingDangles is what the order of I7 and the Views of I8 are for: while services come and go and routes follow
// them, and clients ACK each type when chance has it, no client ever has a route or a listener to a cluster that it has
// not, nor is it sent the routes or endpoints of what it was not sent.
func TestNothingDangles(t *testing.T) {
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			g := generator{rand.New(rand.NewPCG(*seed, 9))}
			for i := range 3 {
				c := r.join(workload("shop", i), delta)
				c.stall()
				c.watch(func(string) { checkDangling(t, c) })
			}
			for range 200 {
				target, other := g.IntN(5), g.IntN(5)
				events := []ingest.Event{gone(numbered(other)), gone(slice(fmt.Sprint("svc-", other)))}
				if target != other {
					events = append(events, numbered(target),
						slice(fmt.Sprint("svc-", target), fmt.Sprint("10.40.0.", g.IntN(3))), virtualService("web",
							"web", hostOf(fmt.Sprint("svc-", target))))
				} else {
					events = append(events, virtualService("web", "web", hostOf("cart")))
				}
				r.apply(events...)
				for range g.IntN(12) {
					r.clients[g.IntN(3)].let(
						oneOf(g, xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL),
					)
					synctest.Wait()
				}
			}
			for _, c := range r.clients {
				c.resume()
			}
			r.converge()
			r.checkPrompt(t, "all")
		})
	})
}

// numbered returns a service that listens on a TCP port too.
func numbered(i int) ingest.Event {
	return service(fmt.Sprint("svc-", i), fmt.Sprint("10.97.0.", i+1), 9000)
}

// checkDangling looks for names that lead nowhere in what a client has.
func checkDangling(t *testing.T, c *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reference := regexp.MustCompile(`outbound\|(80|9000)\|\|svc-[0-9]\.shop\.svc\.cluster\.local`)
	for _, url := range []string{xdstype.ListenerURL, xdstype.RouteURL} {
		for name, b := range c.has[url] {
			for _, cluster := range reference.FindAllString(b, -1) {
				if _, ok := c.has[xdstype.ClusterURL][cluster]; !ok {
					t.Errorf("client %d: %s %s names %s, which it has not; after %v", c.id, kindOf(url), name, cluster,
						c.got[max(0, len(c.got)-4):])
				}
			}
		}
	}
	for next, url := range map[string]string{xdstype.EndpointURL: xdstype.ClusterURL,
		xdstype.RouteURL: xdstype.ListenerURL} {
		known := map[string]bool{}
		for _, b := range c.has[url] {
			for _, name := range dependencies(url, b) {
				known[name] = true
			}
		}
		for name := range c.has[next] {
			if !known[name] {
				t.Errorf("client %d has %s %s, which nothing names", c.id, kindOf(next), name)
			}
		}
	}
}
