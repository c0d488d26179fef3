package discovery

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/xdstype"
)

// edition returns a mesh whose clusters, endpoints, listeners and routes all say the same number: that of the View. The
// subset v1 has one endpoint in even editions, and another in odd ones.
func edition(n int) []ingest.Event {
	route := virtualService("web", "web", hostOf("cart"))
	route.Object.(*networkingv1.VirtualService).Spec.Http[0].Timeout = durationpb.New(time.Duration(n) * time.Second)
	halves := rule("cart", hostOf("cart"), idle(n))
	halves.Object.(*networkingv1.DestinationRule).Spec.Subsets[0].Labels = map[string]string{"half": fmt.Sprint(n % 2)}
	return []ingest.Event{halves, route, half(0), half(1), slice("cart", fmt.Sprintf("10.50.%d.%d", n/250, n%250+1),
		"10.60.0.0", "10.60.0.1")}
}

// half returns the endpoint of the subset v1 in editions of one parity.
func half(parity int) ingest.Event {
	e := pod(fmt.Sprint("pod-10.60.0.", parity), "cart", fmt.Sprint("10.60.0.", parity))
	e.Object.(*corev1.Pod).Labels["half"] = fmt.Sprint(parity)
	return e
}

// editionOf reads the number out of what the client has of a type; zero for nothing.
func editionOf(t *testing.T, c *client, url string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := func(name string, m proto.Message) bool {
		b, ok := c.has[url][name]
		if ok && proto.Unmarshal([]byte(b), m) != nil {
			t.Fatalf("%s does not decode", name)
		}
		return ok
	}
	switch url {
	case xdstype.ClusterURL:
		m := &clusterv3.Cluster{}
		read(clusterOf("cart"), m)
		return int(m.GetConnectTimeout().GetSeconds())
	case xdstype.EndpointURL:
		m := &endpointv3.ClusterLoadAssignment{}
		read(clusterOf("cart"), m)
		for _, a := range addresses(m) {
			var hi, lo int
			if k, _ := fmt.Sscanf(a, "10.50.%d.%d", &hi, &lo); k == 2 {
				return 250*hi + lo - 1
			}
		}
		return 0
	case xdstype.ListenerURL:
		m := &listenerv3.Listener{}
		if !read("10.96.0.2_9000", m) {
			return 0
		}
		proxy := &tcpproxyv3.TcpProxy{}
		filters := m.GetFilterChains()[0].GetFilters()
		if err := filters[len(filters)-1].GetTypedConfig().UnmarshalTo(proxy); err != nil {
			t.Fatal(err)
		}
		return int(proxy.GetIdleTimeout().GetSeconds())
	}
	m := &routev3.RouteConfiguration{}
	read("80", m)
	for _, h := range m.GetVirtualHosts() {
		if strings.HasPrefix(h.GetName(), "web.shop") {
			return int(h.GetRoutes()[0].GetRoute().GetTimeout().GetSeconds())
		}
	}
	return 0
}

// addresses returns those of all endpoints.
func addresses(m *endpointv3.ClusterLoadAssignment) (out []string) {
	for _, l := range m.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			out = append(out, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	return out
}

// TestViewsNeverGoBack is invariant I8: every change makes a View whose number can be read off each type, and clients
// ACK each type when chance has it. No type ever goes back. What comes names only what came before it: listeners and
// routes are of no later View than the clusters that the client was sent, and routes of no earlier one than its
// listeners. Endpoints are of no earlier View than the clusters, and chosen by the DestinationRule that the clusters
// are of.
func TestViewsNeverGoBack(t *testing.T) {
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			g := generator{rand.New(rand.NewPCG(*seed, 8))}
			r.apply(edition(1)...)
			for i := range 3 {
				c := r.join(workload("shop", i), delta)
				c.stall()
				c.watch(watchEditions(t, c))
			}
			for n := 2; n < 300; n++ {
				r.apply(edition(n)...)
				for range g.IntN(8) {
					r.clients[g.IntN(3)].let(
						oneOf(g, xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL),
					)
					synctest.Wait()
				}
				if g.IntN(50) == 0 {
					time.Sleep(time.Second) // the credit comes back by time
				}
			}
			for _, c := range r.clients {
				c.resume()
			}
			r.converge()
			for _, c := range r.clients {
				for _, url := range []string{xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL} {
					if n := editionOf(t, c, url); n != 299 {
						t.Errorf("client %d ends with %s of %d", c.id, kindOf(url), n)
					}
				}
			}
		})
	})
}

// watchEditions checks each response that a client gets.
func watchEditions(t *testing.T, c *client) func(url string) {
	last := map[string]int{}
	return func(url string) {
		now := editionOf(t, c, url)
		if now < last[url] {
			t.Errorf("client %d: %s went back from %d to %d", c.id, kindOf(url), last[url], now)
		}
		last[url] = now
		cds, lds := editionOf(t, c, xdstype.ClusterURL), editionOf(t, c, xdstype.ListenerURL)
		if url == xdstype.EndpointURL && (now < cds || halfOf(t, c) != cds%2) {
			t.Errorf("client %d has clusters of %d and gets endpoints of %d, chosen for %d", c.id, cds, now,
				halfOf(t, c))
		}
		if url != xdstype.EndpointURL && now > cds || url == xdstype.RouteURL && now < lds {
			t.Errorf("client %d has clusters of %d, listeners of %d and gets %s of %d", c.id, cds, lds, kindOf(url),
				now)
		}
	}
}

// halfOf returns the parity of the endpoints that the client has of the subset v1.
func halfOf(t *testing.T, c *client) (parity int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &endpointv3.ClusterLoadAssignment{}
	if err := proto.Unmarshal([]byte(c.has[xdstype.EndpointURL]["outbound|80|v1|"+hostOf("cart")]), m); err != nil {
		t.Fatal(err)
	}
	all := addresses(m)
	if len(all) != 1 {
		t.Errorf("the subset has the endpoints %v", all)
		return -1
	}
	_, _ = fmt.Sscanf(all[0], "10.60.0.%d", &parity)
	return parity
}
