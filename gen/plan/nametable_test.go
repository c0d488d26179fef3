package plan

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// TestNameTableIsMadeOnDemand: names are made when the first client asks, for all classes alike, kept while any client
// that asked is there, and let go of with the last one. Who has left asks for nothing any more.
func TestNameTableIsMadeOnDemand(t *testing.T) {
	sink := newRecorder()
	p, stop := start(sink)
	defer stop()
	builder := snapshot.NewBuilder(p)
	batch := &snapshottest.Batch{Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{}}
	for _, name := range []string{"web", "cart", "db"} {
		k := value.ServiceKey{Host: name + ".a.svc.cluster.local", Namespace: "a"}
		batch.Services[k] = &value.Service{ServiceKey: k, Name: name, Addresses: []string{"10.96.0.1"},
			Export: value.Visibility{Public: true}}
	}
	snapshottest.Apply(builder, batch)
	for id := range uint64(4) {
		client := &proxy.Proxy{ID: fmt.Sprint(id), Namespace: []string{"a", "b"}[id%2]}
		client.Traits.IPv4 = true
		if id == 3 {
			client.Traits.Type = value.Router
		}
		p.Attach(id, client)
	}
	tables := func() (n int) {
		if err := p.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, c := range sink.classes {
			n += sink.sets[c].Sections.Of(xdstype.NameTable).Len()
		}
		return n
	}
	leave := func(id uint64) {
		p.Detach(id)
		tables()
		delete(sink.classes, id)
		maps.DeleteFunc(sink.sets, func(c *classes.Class, _ *classes.ResourceSet) bool {
			return !slices.Contains(slices.Collect(maps.Values(sink.classes)), c)
		})
	}
	for _, step := range []struct {
		what          string
		do            func()
		tables, names int
	}{
		{"nobody asks", func() {}, 0, 0},
		{"one asks", func() { p.Want(0, xdstype.NameTable) }, 4, 3},
		{"another one asks, twice", func() { p.Want(1, xdstype.NameTable); p.Want(1, xdstype.NameTable) }, 4, 3},
		{"the first leaves", func() { leave(0) }, 3, 3},
		{"the last leaves", func() { leave(1) }, 0, 0},
		{"who has left asks", func() { p.Want(1, xdstype.NameTable) }, 0, 0},
		{"a router asks", func() { p.Want(3, xdstype.NameTable) }, 2, 3},
	} {
		step.do()
		if n := tables(); n != step.tables {
			t.Errorf("%s: %d tables, want %d", step.what, n, step.tables)
		}
		names := p.tables.Sizes()["nametable.names"]
		for deadline := time.Now().Add(10 * time.Second); names > step.names && time.Now().Before(deadline); {
			runtime.GC()
			runtime.Gosched()
			names = p.tables.Sizes()["nametable.names"]
		}
		if names != step.names {
			t.Errorf("%s: names of %d hosts, want %d", step.what, names, step.names)
		}
	}
}
