package discovery

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestStormLeavesNothing is invariant I9: after a storm of clients that come and go, some without ever answering, while
// thousands of objects change, nothing outlives its owner. What the server holds for one client is what it held for it
// before; without clients it holds nothing for them; and goroutines end with the server.
func TestStormLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startRun(t)
	defer r.stop()
	r.server.Store.Apply(sampleMesh())
	one := func() map[string]int {
		r.connect(workload("shop", 0), true)
		r.settle()
		return r.holdings()
	}
	before := one()
	r.leaveAll()
	r.storm(generator{rand.New(rand.NewPCG(*seed, 10))})
	r.leaveAll()
	r.awaitHoldings(t, map[string]int{})
	r.server.Store.Apply(sampleMesh())
	r.settle()
	one()
	r.awaitHoldings(t, before)
}

// TestStormsLeaveNoMemory: after one storm or after many, what is live is the same, and so are the goroutines.
func TestStormsLeaveNoMemory(t *testing.T) {
	r := startRun(t)
	defer r.stop()
	after := func(storms int) (live, goroutines int) {
		for i := range storms {
			r.storm(generator{rand.New(rand.NewPCG(*seed, uint64(20+i)))})
			r.leaveAll()
		}
		r.awaitHoldings(t, map[string]int{})
		return liveBytes(), runtime.NumGoroutine()
	}
	after(1)
	live, goroutines := after(1)
	liveLater, goroutinesLater := after(2)
	if liveLater > live+live/50+256<<10 || goroutinesLater > goroutines {
		t.Errorf("%d KiB were live with %d goroutines, two storms later %d KiB with %d", live>>10, goroutines,
			liveLater>>10, goroutinesLater)
	}
}

// storm lets clients come and go while objects change, and ends with no object but those of before.
func (r *running) storm(g generator) {
	seen := map[value.ObjectKey]ingest.Event{}
	for range 300 {
		batch := make([]ingest.Event, 1+g.IntN(6))
		for i := range batch {
			batch[i] = g.event()
			seen[batch[i].Key] = batch[i]
		}
		r.server.Store.Apply(batch)
		for len(r.clients) > 12 || len(r.clients) > 0 && g.IntN(3) == 0 {
			r.leave(r.clients[g.IntN(len(r.clients))])
		}
		for g.IntN(2) == 0 {
			r.connect(nodeOf(g.IntN(30)), g.IntN(2) == 0)
			if g.IntN(4) == 0 {
				r.clients[len(r.clients)-1].stall()
			}
		}
	}
	all := slices.Collect(maps.Values(seen))
	for i := range all {
		all[i] = gone(all[i])
	}
	r.server.Store.Apply(all)
}

func (r *running) leaveAll() {
	for _, c := range r.clients {
		c.leave()
	}
	r.clients = nil
	r.settle()
}

// holdings count what the server holds, by name; what is none is left out.
func (r *running) holdings() map[string]int {
	out := r.server.Tables.Sizes()
	p, s := r.server.Planner.Counts(), r.server.Shards.Counts()
	out["planner.clients"], out["planner.classes"], out["planner.bases"] = p.Clients, p.Classes, p.Bases
	out["shards.streams"], out["shards.classes"], out["shards.runs"], out["shards.doubts"] = r.server.Shards.Streams(),
		s.Classes, s.Runs, s.Doubts
	out["names"] = r.server.Names.Len()
	out["shards.underway"], _ = r.server.Shards.Underway()
	out["shards.planning"] = r.server.Shards.Planning()
	for _, f := range r.server.Shards.Stats() {
		out["shards.connecting"] += f.Connecting
		out["shards.members"] += f.Members
		out["shards.cohorts"] += f.Cohorts
		out["shards.crews"] += f.Classes
	}
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out
}

// awaitHoldings waits until garbage collection has left the server with no more than want.
func (r *running) awaitHoldings(t *testing.T, want map[string]int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		var over []string
		for name, n := range r.holdings() {
			if n > want[name] {
				over = append(over, fmt.Sprintf("%s holds %d, want %d", name, n, want[name]))
			}
		}
		if len(over) == 0 {
			return
		}
		if time.Now().After(deadline) {
			slices.Sort(over)
			t.Fatalf("after 10 s:\n%s", strings.Join(over, "\n"))
		}
		runtime.Gosched()
	}
}
