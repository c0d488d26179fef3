package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
)

// testLoads has replicas tell each other their loads by a real API server. Of one that says nothing any more nothing is
// known after some rounds; one that is not ready says nothing.
func testLoads(t *testing.T, a *API) {
	type replica struct {
		tick   chan time.Time
		others chan []int
		stop   func()
	}
	run := func(name string, load int) *replica {
		r := &replica{tick: make(chan time.Time), others: make(chan []int, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			a.ShareLoads(ctx, Loads{Namespace: "istio-system", Name: "load", Replica: name, Every: r.tick,
				Own: func() (int, bool) { return load, load >= 0 }, Log: slog.New(slog.DiscardHandler),
				Tell: func(others []int) { r.others <- others }})
		})
		r.stop = func() { cancel(); all.Wait() }
		return r
	}
	round := func(r *replica) []int {
		r.tick <- time.Time{}
		select {
		case o := <-r.others:
			slices.Sort(o)
			return o
		case <-time.After(10 * time.Second):
			t.Error("a replica is told nothing")
			return nil
		}
	}
	one, two, three := run("one", 10), run("two", 20), run("three", -1)
	defer one.stop()
	three.tick <- time.Time{}
	three.tick <- time.Time{} // the first one is over, and nothing was told
	parts.Eventually(t, "each knows the other's load", func() error {
		if a, b := round(one), round(two); !slices.Equal(a, []int{20}) || !slices.Equal(b, []int{10}) {
			return fmt.Errorf("%v, %v", a, b)
		}
		return nil
	})
	for range loadStale {
		round(one)
	}
	if o := round(one); len(o) > 0 {
		t.Errorf("a replica that says nothing counts: %v", o)
	}
	round(two)
	if o := round(one); !slices.Equal(o, []int{20}) {
		t.Errorf("a replica that speaks again does not count: %v", o)
	}
	two.stop()
	if o := round(one); len(o) > 0 {
		t.Errorf("a replica that has ended counts: %v", o)
	}
	three.stop()
}
