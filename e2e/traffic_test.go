package e2e_test

import (
	"fmt"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestTraffic follows one mesh through edits, as sidecars and gateways over both
// protocols and a proxyless gRPC client see them in the answers to their requests.
func TestTraffic(t *testing.T) {
	t.Run("cluster", func(t *testing.T) { traffic(t, inCluster) })
	t.Run("directory", func(t *testing.T) { traffic(t, inDirectory) })
}

func traffic(t *testing.T, where func(*testing.T) parts.Objects) {
	w := newWorld(t, where, baseMesh()+weights(75, 25))
	w.backends()
	xds := w.pilotd.Address()
	from := w.network.Pod(t, outsider().ip)
	callers := []caller{
		w.sidecar(clientDelta(), parts.Delta, xds), w.sidecar(clientSotW(), parts.SotW, xds),
		w.gateway(gatewayDelta(), parts.Delta, xds, from), w.gateway(gatewaySotW(), parts.SotW, xds, from),
	}
	grpc := parts.StartGRPCClient(t, w.network.Pod(t, clientGRPC().ip), clientGRPC().workload(), xds,
		"xds:///"+webHost+":7070")
	for _, c := range callers {
		c.envoy.AwaitReady()
	}
	// What follows a failed step would only fail too, each after its own wait.
	each := func(name string, cond func(*testing.T, caller)) {
		t.Helper()
		ok := t.Run(name, func(t *testing.T) {
			for _, c := range callers {
				t.Run(c.name, func(t *testing.T) {
					cond(t, c)
					if err := c.envoy.NothingRefused(); err != nil {
						t.Error(err)
					}
				})
			}
		})
		if !ok {
			t.FailNow()
		}
	}

	each("weights are seen in the answers", func(t *testing.T, c caller) {
		parts.Eventually(t, "both versions answer",
			func() error { return c.only(40, "web-v1", "web-v2-a", "web-v2-b") })
		counts, err := parts.Names(200, func() (parts.Answer, error) { return c.ask() })
		if err != nil {
			t.Fatal(err)
		}
		// 200 draws at 3:1 leave these bounds once in more than a million times.
		if n := counts["web-v1"]; n < 115 || n > 182 {
			t.Errorf("weight 75 of 100, but v1 answered %d of 200: %v", n, counts)
		}
	})
	each("a header selects its route", selectsByHeader)
	t.Run("a gRPC client resolves and calls", func(t *testing.T) {
		counts := eventuallyCalls(t, grpc, 60, "web-v1", "web-v2-a", "web-v2-b")
		if counts["web-v1"] <= counts["web-v2-a"]+counts["web-v2-b"] {
			t.Errorf("weight 75 of 100: %v", counts)
		}
	})

	w.objects.Apply(weights(0, 100))
	each("an edited route changes the answers", func(t *testing.T, c caller) {
		parts.Eventually(t, "only v2 answers", func() error { return c.only(20, "web-v2-a", "web-v2-b") })
	})
	t.Run("an edited route changes gRPC's answers", func(t *testing.T) {
		eventuallyCalls(t, grpc, 20, "web-v2-a", "web-v2-b")
	})

	w.objects.Apply(webSlice(webV1(), webV2a()))
	w.objects.Delete(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop}}", webV2b().name))
	each("a pod that goes away gets no more traffic", func(t *testing.T, c caller) {
		parts.Eventually(t, "only the other pod answers", func() error { return c.only(20, "web-v2-a") })
	})
	t.Run("a pod that goes away gets no more gRPC calls", func(t *testing.T) {
		eventuallyCalls(t, grpc, 20, "web-v2-a")
	})

	w.objects.Apply(webV2b().yaml() + webSlice(webV1(), webV2a(), webV2b()))
	each("a pod that comes gets traffic", func(t *testing.T, c caller) {
		parts.Eventually(t, "both pods answer", func() error { return c.only(20, "web-v2-a", "web-v2-b") })
	})
}

// selectsByHeader checks that requests with the header of the first route reach the first version alone.
func selectsByHeader(t *testing.T, c caller) {
	counts, err := parts.Names(20, func() (parts.Answer, error) { return c.ask("end-user", "tester") })
	if err == nil {
		err = onlyFrom(counts, "web-v1")
	}
	if err != nil {
		t.Error(err)
	}
}

// eventuallyCalls waits until n calls are answered by those and nobody else.
func eventuallyCalls(t *testing.T, c *parts.GRPCClient, n int, names ...string) (counts map[string]int) {
	t.Helper()
	parts.Eventually(t, "gRPC calls are answered", func() (err error) {
		if counts, err = c.Call(n); err != nil {
			return err
		}
		return onlyFrom(counts, names...)
	})
	return counts
}
