package plan

import (
	"context"
	"fmt"
	"testing"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

type set = classes.ResourceSet

// TestNamespacesShareTheirChunks: what proxies of many namespaces with the default scope have is equal but for a few
// resources, so the chunks that hold it are the same ones, also after a change. What hangs on a chunk (its encoded run
// first of all) is then there once, not once for each namespace.
func TestNamespacesShareTheirChunks(t *testing.T) {
	const namespaces = 40
	r := newRecorder()
	p, stop := start(r)
	defer stop()
	builder := snapshot.NewBuilder(p)
	service := func(i int, number int) *value.Service {
		k := value.ServiceKey{Host: fmt.Sprintf("s%03d.n%d.svc.cluster.local", i, i%namespaces),
			Namespace: fmt.Sprint("n", i%namespaces)}
		return &value.Service{ServiceKey: k, Name: fmt.Sprintf("s%03d", i), Registry: value.RegistryKubernetes,
			Export:    value.Visibility{Public: true},
			Addresses: []string{fmt.Sprintf("10.1.%d.%d", i/200, i%200+1)},
			Ports:     []*value.Port{{Name: "tcp", Number: number, Protocol: value.TCP}}}
	}
	b := &snapshottest.Batch{Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{}}
	for i := range 10 * namespaces {
		s := service(i, 3306)
		b.Services[s.ServiceKey] = s
	}
	snapshottest.Apply(builder, b)
	for i := range namespaces {
		p.Attach(uint64(i), &proxy.Proxy{ID: fmt.Sprint(i), Namespace: fmt.Sprint("n", i),
			Addresses: []string{fmt.Sprint("10.9.9.", i+1)}})
	}
	for _, change := range []string{"at first", "after a change"} {
		if err := p.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		var sets []*set
		for _, w := range r.sets {
			sets = append(sets, w)
		}
		for what, n := range map[string]chunkCount{
			"clusters":    countChunks(sets, func(w *set) classes.Section { return w.Sections.Of(xdstype.Cluster) }),
			"listeners":   countChunks(sets, func(w *set) classes.Section { return w.Sections.Of(xdstype.Listener) }),
			"assignments": countChunks(sets, func(w *set) chunked.Map[*classes.Assignment] { return w.Assignments }),
		} {
			// what is of a namespace, or a proxy, is a chunk of its own at most
			if len(sets) != namespaces || n.each < 4 || n.all > n.each+namespaces {
				t.Errorf("%s: %s: %d sets with at most %d chunks each have %d", change, what, len(sets), n.each, n.all)
			}
		}
		s := service(7, 3307)
		snapshottest.Apply(builder, &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{s.ServiceKey: s}})
	}
}

// chunkCount is how many chunks there are in all, and in the ResourceSet that has most.
type chunkCount struct{ all, each int }

func countChunks[V comparable](sets []*set, of func(*set) chunked.Map[V]) (n chunkCount) {
	seen := map[*chunked.Chunk[V]]struct{}{}
	for _, w := range sets {
		own := 0
		for c := range of(w).Chunks() {
			seen[c] = struct{}{}
			own++
		}
		n.each = max(n.each, own)
	}
	n.all = len(seen)
	return n
}
