package ingest

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/snapshot/value"
)

const oneService = `
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
`

// TestNothingBeforeAllSourcesAreSynced: the first Batch holds everything, and there is exactly one.
func TestNothingBeforeAllSourcesAreSynced(t *testing.T) {
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube", "dir")
	s.Apply(decode(t, "kube", oneService))
	s.Synced("kube")
	s.Apply(decode(t, "dir", "kind: Namespace\nmetadata: {name: shop}"))
	if len(k.batches) != 0 || s.Ready() {
		t.Fatalf("%d batches before all sources were synced", len(k.batches))
	}
	s.Synced("dir")
	if len(k.batches) != 1 || !s.Ready() {
		t.Fatalf("%d batches once all sources were synced", len(k.batches))
	}
	got := lines(k.batches[0])
	want := []string{
		"mesh root=istio-system trust=cluster.local", "namespace shop: {}",
		"service web.shop.svc.cluster.local/shop: EDS addresses=[10.96.0.1] http:80:HTTP",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("first batch:\n%s", strings.Join(got, "\n"))
	}
}

// TestEmptyWorldIsComplete: with nothing at all there is a first Batch, of the default mesh.
func TestEmptyWorldIsComplete(t *testing.T) {
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube")
	s.Synced("kube")
	if len(k.batches) != 1 || k.whole.Mesh == nil {
		t.Fatalf("%d batches", len(k.batches))
	}
	s.Synced("kube")
	if len(k.batches) != 1 {
		t.Fatal("a second Synced handed something over")
	}
}

// TestEqualValuesKeepTheirPointers: a change of one endpoint keeps the other's pointer, the Service's and the
// projection's.
func TestEqualValuesKeepTheirPointers(t *testing.T) {
	s, d := buildLarge(1, 2, 3)
	host := value.ServiceKey{Host: "s0.shop.svc.cluster.local", Namespace: "shop"}
	before := d.last.Endpoints[host].New.All()
	d.last = nil
	s.Apply([]Event{largeSlice(0, 1, 3, true)})
	if d.last != nil {
		t.Fatalf("an equal slice changed %v", lines(d.last))
	}
	s.Apply([]Event{largeSlice(0, 1, 3, false)})
	if !d.last.EndpointsOnly() || len(d.last.Endpoints) != 1 {
		t.Fatalf("one endpoint changed more than endpoints: %v", lines(d.last))
	}
	same := 0
	for i, e := range d.last.Endpoints[host].New.All() {
		if e == before[i] {
			same++
		} else if e.Addresses[0] != largeAddress(0, 1, 0) {
			t.Errorf("%s has another pointer", showEndpoint(e))
		}
	}
	if same != 5 {
		t.Fatalf("%d of 5 pointers kept", same)
	}
}

// TestRejectionsOfFiles: what a source cannot read stands until it takes it back, and is counted.
func TestRejectionsOfFiles(t *testing.T) {
	var standing int
	refused := map[value.Kind]int{}
	s := NewStore(newKeeper(), Settings{Log: testLog(t), Metrics: Metrics{
		Standing: func(n int) { standing = n }, Refused: func(k value.Kind) { refused[k]++ },
	}}, "dir")
	s.Reject(Rejection{Source: "dir", Where: "a.yaml:3", Reason: "no YAML"})
	s.Reject(Rejection{Source: "dir", Where: "a.yaml:9", Reason: "no YAML either"})
	s.Reject(Rejection{Source: "dir", Where: "a.yaml:9", Reason: "no YAML either"})
	s.Reject(Rejection{Source: "dir", Where: "b.yaml", Reason: "gone"})
	if n := len(s.Rejections()); n != 3 || standing != 3 || refused["File"] != 3 {
		t.Fatalf("%d rejections, %d standing, %v refused", n, standing, refused)
	}
	s.Accept("dir", "a.yaml")
	if got := s.Rejections(); len(got) != 1 || got[0].Where != "b.yaml" || standing != 1 {
		t.Fatalf("after Accept: %v, %d standing", got, standing)
	}
	s.Apply(decode(t, "dir", "kind: Gateway\nmetadata: {name: g, namespace: n}"))
	if standing != 2 {
		t.Fatalf("%d standing with a bad Gateway", standing)
	}
	s.Apply(decode(t, "dir", "kind: Gateway\nmetadata: {name: g, namespace: n}\ndelete: true"))
	if standing != 1 {
		t.Fatalf("%d standing after the bad Gateway went", standing)
	}
}
