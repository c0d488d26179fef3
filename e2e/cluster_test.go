package e2e_test

import (
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestCRDsThatComeLater starts pilotd on a cluster that knows no Istio. Its services are
// served; when the CRDs come, so are the objects of their kinds.
func TestCRDsThatComeLater(t *testing.T) {
	var cluster *parts.Cluster
	services := namespaces() + podsAndServices()
	w := newWorld(t, func(t *testing.T) parts.Objects {
		cluster = parts.NewBareCluster(t, parts.StartAPIServer(t))
		return cluster
	}, services)
	w.backends()
	c := w.sidecar(clientDelta(), parts.Delta, w.pilotd.Address())
	c.envoy.AwaitReady()
	parts.Eventually(t, "every pod answers", func() error { return c.only(20, "web-v1", "web-v2-a", "web-v2-b") })

	cluster.InstallCRDs()
	w.objects.Apply(istioObjects() + weights(0, 100))
	parts.Eventually(t, "the route is followed", func() error { return c.only(20, "web-v2-a", "web-v2-b") })
	if err := c.envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
}

// TestAPIServerThatDies takes the API server away for good: what pilotd knows it goes on
// serving, also to an Envoy that comes only now.
func TestAPIServerThatDies(t *testing.T) {
	var cluster *parts.Cluster
	w := newWorld(t, func(t *testing.T) parts.Objects {
		cluster = parts.NewCluster(t, parts.StartAPIServer(t))
		return cluster
	}, baseMesh()+weights(0, 100))
	w.backends()
	before := w.sidecar(clientDelta(), parts.Delta, w.pilotd.Address())
	before.envoy.AwaitReady()
	parts.Eventually(t, "v2 answers", func() error { return before.only(10, "web-v2-a", "web-v2-b") })

	cluster.StopServer()
	after := w.sidecar(clientSotW(), parts.SotW, w.pilotd.Address())
	after.envoy.AwaitReady()
	for _, c := range []caller{before, after} {
		parts.Eventually(t, c.name+" is answered", func() error { return c.only(10, "web-v2-a", "web-v2-b") })
	}
}

// TestInvalidObject edits a route into nonsense: the last good version stays in force,
// and the next good one is taken. It is about files, for an API server refuses most
// nonsense by itself.
func TestInvalidObject(t *testing.T) {
	w := newWorld(t, inDirectory, baseMesh()+weights(0, 100))
	w.backends()
	c := w.sidecar(clientDelta(), parts.Delta, w.pilotd.Address())
	c.envoy.AwaitReady()
	parts.Eventually(t, "v2 answers", func() error { return c.only(10, "web-v2-a", "web-v2-b") })

	w.objects.Apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{match: [{uri: {regex: "(["}}], route: [{destination: {host: web.shop.svc.cluster.local, subset: v1}}]}]
`)
	// An edit of another object that comes through tells that the bad one was read.
	w.objects.Apply(webSlice(webV1(), webV2a()))
	parts.Eventually(t, "the later edit is there", func() error { return c.only(10, "web-v2-a") })

	w.objects.Apply(weights(100, 0))
	parts.Eventually(t, "the good edit is there", func() error { return c.only(10, "web-v1") })
	if err := c.envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
}
