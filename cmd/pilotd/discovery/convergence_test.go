package discovery

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/ingest"
	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of the randomised test")
	steps = flag.Int("steps", 400, "batches of the randomised test; each holds one to six events")
)

// TestConvergence is invariant I1 for the whole server: batches of random events of every kind, in orders as bad as
// chance makes them, while clients of both protocols come and go. After each batch every client has exactly what a
// server that starts now gives it, byte by byte; what it got on the way passed validation, and nothing was sent twice
// without a reason that the protocol knows.
func TestConvergence(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *running) {
		g := generator{rand.New(rand.NewPCG(*seed, 0))}
		objects := map[value.ObjectKey]ingest.Event{}
		for step := range *steps {
			batch := make([]ingest.Event, 1+g.IntN(6))
			for i := range batch {
				batch[i] = g.event()
				objects[batch[i].Key] = batch[i]
			}
			r.server.Store.Apply(batch)
			r.churn(g)
			r.converge()
			checkScratch(t, r, objects, step, batch)
			if t.Failed() {
				return
			}
		}
	})
}

// running is a server with its clients.
type running struct {
	t       testing.TB
	server  *Server
	clients []*client
	nextID  uint64
	stop    func()
}

func startRun(t testing.TB) *running {
	s := New(Options{Shards: 2, Sources: []string{"test"}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Build: "test"})
	s.Store.Synced("test")
	return runServer(t, s)
}

// nodeOf returns the i-th of a few proxies: sidecars in two namespaces, one that nobody knows, upstream Envoys, and a
// gateway.
func nodeOf(i int) *corev3.Node {
	kind, ns, app := "sidecar", []string{"shop", "team-b"}[i%2], []string{"web", "cart", "db"}[i%3]
	if i%5 == 4 {
		kind, ns, app = "router", "istio-system", "gateway"
	}
	md, _ := structpb.NewStruct(map[string]any{"NAMESPACE": ns, "CLUSTER_ID": "Kubernetes", "DNS_CAPTURE": i%2 == 0,
		"LABELS": map[string]any{"app": app, "own": fmt.Sprint(i)}})
	n := &corev3.Node{Id: fmt.Sprintf("%s~10.10.0.%d~pod-%d.%s~%s.svc.cluster.local", kind, i%7+1, i%7+1, ns, ns),
		Metadata: md}
	if i%3 == 1 {
		n.Extensions = []*corev3.Extension{{Name: "envoy.filters.http.router",
			TypeUrls: []string{"envoy.extensions.filters.http.router.v3.Router"}}}
	}
	return n
}

// churn lets clients come and go.
func (r *running) churn(g generator) {
	if len(r.clients) > 0 && g.IntN(4) == 0 {
		i := g.IntN(len(r.clients))
		r.clients[i].leave()
		r.clients = slices.Delete(r.clients, i, i+1)
	}
	for len(r.clients) < 6 && g.IntN(2) == 0 {
		r.connect(nodeOf(g.IntN(30)), g.IntN(2) == 0)
	}
}

func (r *running) connect(n *corev3.Node, delta bool) {
	r.nextID++
	c, err := newClient(r.server, r.nextID, n, delta)
	if err != nil {
		r.t.Fatal(err)
	}
	c.warms = r.nextID%2 == 0
	if err := c.begin(ads.Request{Delta: delta, TypeURL: xdstype.ClusterURL, Node: n}); err != nil {
		r.t.Fatal(err)
	}
	r.clients = append(r.clients, c)
}

// settle waits until nothing is under way: everything planned, every client told, everything ACKed.
func (r *running) settle() {
	deadline := time.Now().Add(20 * time.Second)
	for calm := 0; calm < 2; {
		if err := r.server.Planner.Barrier(context.Background()); err != nil {
			r.t.Fatal(err)
		}
		busy := r.busy()
		if busy == "" {
			calm++
			continue
		}
		calm = 0
		if time.Now().After(deadline) {
			r.t.Fatalf("not settled after 20 s: %s", busy)
		}
	}
}

// busy says what is still under way, or nothing; what slow clients owe is not.
func (r *running) busy() string {
	for _, c := range r.clients {
		if c.open.Load() > 0 {
			return fmt.Sprintf("client %d has mail", c.id)
		}
	}
	told := r.server.Shards.Clients()
	if len(told) != len(r.clients) {
		return fmt.Sprintf("%d of %d clients are placed", len(told), len(r.clients))
	}
	for _, f := range r.server.Shards.Stats() {
		if f.Inbox+f.ResourceSets+f.Services > 0 {
			return fmt.Sprintf("a shard has work: %+v", f)
		}
	}
	for _, c := range told {
		slow := slices.ContainsFunc(r.clients, func(x *client) bool { return x.id == c.ID && x.isSlow() })
		for t, st := range c.Types {
			if !slow && (st.Waiting || st.Pending) {
				return fmt.Sprintf("client %d: %s is waiting %v, pending %v", c.ID, t.URL(), st.Waiting, st.Pending)
			}
		}
		if !slow && len(c.Types) < 2 {
			return fmt.Sprintf("client %d has asked for %d types", c.ID, len(c.Types))
		}
	}
	return ""
}

// checkScratch holds every client against one of a server that is given all objects at once.
func checkScratch(t *testing.T, r *running, objects map[value.ObjectKey]ingest.Event, step int, batch []ingest.Event) {
	t.Helper()
	fresh := startRun(t)
	defer fresh.stop()
	fresh.server.Store.Apply(slices.Collect(maps.Values(objects)))
	for _, c := range r.clients {
		fresh.connect(c.node, c.delta)
	}
	fresh.converge()
	for i, c := range r.clients {
		if d := difference(c.content(), fresh.clients[i].content()); d != "" {
			r.connect(c.node, c.delta)
			r.converge()
			t.Log("a client that connects now has what it should have:",
				difference(r.clients[len(r.clients)-1].content(), fresh.clients[i].content()) == "")
			t.Errorf("seed %d, step %d: client %d (%s, delta %v): %s\nafter %s\n%s", *seed, step, c.id, c.node.Id,
				c.delta, d, describe(batch), strings.Join(c.history[max(0, len(c.history)-20):], "\n"))
		}
		for _, complaint := range c.complaints() {
			t.Errorf("seed %d, step %d: client %d (%s, delta %v): %s\nafter %s", *seed, step, c.id, c.node.Id, c.delta,
				complaint, describe(batch))
		}
	}
}

func describe(batch []ingest.Event) (out string) {
	for _, e := range batch {
		what := "put"
		if e.Object == nil {
			what = "delete"
		}
		out += fmt.Sprintf(" %s %s;", what, e.Key)
	}
	return out
}

// difference names the first resource that differs.
func difference(got, want map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[k]; !ok {
			return k + " is missing"
		} else if g != want[k] {
			return k + " has other content:\n" + cmp.Diff(strings.Split(readable(k, want[k]), "\n"),
				strings.Split(readable(k, g), "\n"))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			return k + " should be gone"
		}
	}
	return ""
}

// readable returns a resource as text.
func readable(key, b string) string {
	kind, _, _ := strings.Cut(key, " ")
	m := map[string]proto.Message{"Cluster": &clusterv3.Cluster{},
		"ClusterLoadAssignment": &endpointv3.ClusterLoadAssignment{},
		"Listener":              &listenerv3.Listener{}, "RouteConfiguration": &routev3.RouteConfiguration{},
		"NameTable": &ndsv1.NameTable{}}[kind]
	if err := proto.Unmarshal([]byte(b), m); err != nil {
		return err.Error()
	}
	return prototext.Format(m)
}
