package discovery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/ingest"
)

// inBubble runs a test on a server with the given objects, where time passes only when the test lets it.
func inBubble(t *testing.T, objects []ingest.Event, f func(t *testing.T, r *running)) {
	synctest.Test(t, func(t *testing.T) {
		r := startRun(t)
		defer r.stop()
		r.server.Store.Apply(objects)
		f(t, r)
	})
}

// apply has the server take events, and waits until it rests.
func (r *running) apply(events ...ingest.Event) {
	r.server.Store.Apply(events)
	synctest.Wait()
}

// converge lets time pass until nothing is under way.
func (r *running) converge() {
	synctest.Wait()
	for range 100 {
		if r.busy() == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
	}
	r.t.Fatalf("not settled: %s", r.busy())
}

// join connects a proxy and waits until it has everything.
func (r *running) join(n *corev3.Node, delta bool) *client {
	r.connect(n, delta)
	r.converge()
	return r.clients[len(r.clients)-1]
}

// leave disconnects one client.
func (r *running) leave(c *client) {
	c.leave()
	for i := range r.clients {
		if r.clients[i] == c {
			r.clients = append(r.clients[:i:i], r.clients[i+1:]...)
			return
		}
	}
}

// workload returns the i-th sidecar of a namespace. None of them is an endpoint of anything, and nothing reads how
// their labels differ.
func workload(namespace string, i int) *corev3.Node {
	md, _ := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "CLUSTER_ID": "Kubernetes",
		"LABELS": map[string]any{"app": "client", "own": fmt.Sprint(i)}})
	return &corev3.Node{Id: fmt.Sprintf("sidecar~10.20.0.%d~client-%d.%s~%s.svc.cluster.local", i+1, i, namespace,
		namespace), Metadata: md}
}

// router returns a gateway that the sample mesh's Gateway selects.
func router() *corev3.Node {
	md, _ := structpb.NewStruct(map[string]any{"NAMESPACE": "istio-system", "CLUSTER_ID": "Kubernetes",
		"LABELS": map[string]any{"app": "gateway"}})
	return &corev3.Node{Id: "router~10.20.1.1~gateway.istio-system~istio-system.svc.cluster.local", Metadata: md}
}

// bothProtocols runs a test for State-of-the-World and for Delta.
func bothProtocols(t *testing.T, f func(t *testing.T, delta bool)) {
	t.Run("sotw", func(t *testing.T) { f(t, false) })
	t.Run("delta", func(t *testing.T) { f(t, true) })
}
