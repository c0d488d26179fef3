package discovery

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/ingest"
	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/xdstype"
)

// An agent that asks for the name table gets one resource after the first listeners, and again when a name differs and
// only then: also where it is empty. Nothing of it is made before somebody asks. Who asks after all have left gets it,
// too.
func TestNameTable(t *testing.T) {
	bothProtocols(t, func(t *testing.T, delta bool) {
		inBubble(t, nil, func(t *testing.T, r *running) {
			r.join(workload("shop", 0), delta)
			r.apply(service("first", "10.96.0.1"))
			r.converge()
			if n, ok := r.server.Tables.Sizes()["nametable.names"]; !ok || n != 0 {
				t.Fatalf("%d names are made for nobody, %v", n, ok)
			}
			r.apply(gone(service("first", "10.96.0.1")))
			r.converge()
			node := workload("shop", 1)
			node.Metadata.Fields["DNS_CAPTURE"] = structpb.NewBoolValue(true)
			c := r.join(node, delta)
			wantNames(t, c, 1, "")
			r.apply(service("web", "10.96.0.1"))
			r.converge()
			wantNames(t, c, 2, "web.shop.svc.cluster.local=10.96.0.1")
			r.apply(service("web", "10.96.0.1", 9000)) // a port more changes no name
			r.converge()
			wantNames(t, c, 2, "web.shop.svc.cluster.local=10.96.0.1")
			r.apply(service("db", corev1.ClusterIPNone), subdomain(pod("pod-10.0.0.1", "db", "10.0.0.1"), "db"),
				slice("db", "10.0.0.1"))
			r.converge()
			wantNames(t, c, 3, "db.shop.svc.cluster.local=10.0.0.1 pod-10.db.shop.svc.cluster.local=10.0.0.1 "+
				"web.shop.svc.cluster.local=10.96.0.1")
			r.apply(slice("db", "10.0.0.1", "10.0.0.2"))
			r.converge()
			wantNames(t, c, 4, "db.shop.svc.cluster.local=10.0.0.1,10.0.0.2 "+
				"pod-10.db.shop.svc.cluster.local=10.0.0.1 web.shop.svc.cluster.local=10.96.0.1")
			gate := router() // has the same, though nothing leads it there
			gate.Metadata.Fields["DNS_CAPTURE"] = structpb.NewBoolValue(true)
			again := r.join(gate, delta)
			wantNames(t, again, 1, "db.shop.svc.cluster.local=10.0.0.1,10.0.0.2 "+
				"pod-10.db.shop.svc.cluster.local=10.0.0.1 web.shop.svc.cluster.local=10.96.0.1")
			r.leave(c)
			r.leave(again)
			r.converge()
			wantNames(t, r.join(node, delta), 1, "db.shop.svc.cluster.local=10.0.0.1,10.0.0.2 "+
				"pod-10.db.shop.svc.cluster.local=10.0.0.1 web.shop.svc.cluster.local=10.96.0.1")
		})
	})
}

// subdomain gives a pod a name of its own below the name of a headless Service.
func subdomain(e ingest.Event, name string) ingest.Event {
	p := e.Object.(*corev1.Pod)
	p.Spec.Hostname, p.Spec.Subdomain = "pod-10", name
	return e
}

// wantNames checks the table that a client has, and how often it came.
func wantNames(t *testing.T, c *client, times int, want string) {
	t.Helper()
	b, ok := c.content()["NameTable "]
	m := &ndsv1.NameTable{}
	if err := proto.Unmarshal([]byte(b), m); err != nil || !ok {
		t.Fatalf("no table: %v", err)
	}
	var got []string
	for _, name := range slices.Sorted(maps.Keys(m.Table)) {
		got = append(got, name+"="+strings.Join(m.Table[name].Ips, ","))
	}
	if s := strings.Join(got, " "); s != want {
		t.Errorf("names are %s, want %s", s, want)
	}
	came := 0
	for i, x := range c.got {
		if x.url != xdstype.NameTableURL {
			continue
		}
		came++
		if !slices.ContainsFunc(c.got[:i], func(y response) bool { return y.url == xdstype.ListenerURL }) {
			t.Errorf("a table came before any listeners: %v", c.got)
		}
		if len(x.names) != 1 || len(x.removed) > 0 {
			t.Errorf("a response of %d resources", len(x.names))
		}
	}
	if came != times {
		t.Errorf("it came %d times, want %d", came, times)
	}
}
