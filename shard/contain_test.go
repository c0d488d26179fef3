package shard

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// breakOn has the fleet panic while it does something for one stream, or for none in particular (zero).
func (f *fleet) breakOn(doing string, id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.breaks = func(what string, of uint64) bool { return strings.HasPrefix(what, doing) && of == id }
}

func (f *fleet) sabotage(doing string, id uint64) {
	f.mu.Lock()
	breaks := f.breaks
	f.mu.Unlock()
	if breaks != nil && breaks(doing, id) {
		panic("sabotage")
	}
}

// A panic while one stream is handled, whatever the worker was doing, ends that stream; another one of the same class
// goes on, and nothing is left of the first one.
func TestAPanicEndsOneStream(t *testing.T) {
	for _, doing := range []string{"a request", "a first request", "a new ResourceSet", "a change of endpoints",
		"a timer"} {
		t.Run(doing, func(t *testing.T) { panicWhile(t, doing) })
	}
}

func panicWhile(t *testing.T, doing string) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1")
		one := class("one")
		bystander := f.connect("b").place(one, f.set("x=1", ""))
		bystander.take()
		bystander.endpoints("x").take()
		victim := f.connect("a")
		if doing == "a first request" {
			f.breakOn(doing, victim.id)
		}
		victim.place(one, f.set("x=1", ""))
		if doing != "a first request" {
			victim.take()
			victim.endpoints("x").take()
			bystander.take()
			f.breakOn(doing, victim.id)
		}
		if doing == "a timer" {
			f.advance(one, f.set("", "")) // removals wait for ACKs
		}
		if doing == "a request" {
			victim.ask(ads.Request{TypeURL: xdstype.RouteURL, Subscribe: f.shards.opts.Names.Of([]string{"80"})})
		}
		f.advance(one, f.set("x=2", ""))
		f.table("x=2")
		if doing == "a timer" {
			time.Sleep(2 * ads.RemovalWait)
			synctest.Wait()
		}
		victim.mu.Lock()
		closed := victim.closed
		victim.mu.Unlock()
		if closed == nil || !strings.Contains(closed.Error(), "Internal") {
			t.Fatalf("the stream ended with %v", closed)
		}
		if len(f.faults) != 1 || f.faults[0].Proxy.ID != "a" || len(f.faults[0].Stack) == 0 {
			t.Errorf("faults %+v", f.faults)
		}
		if got := bystander.take() + "; " + bystander.take(); !strings.Contains(got, "EDS x=2") {
			t.Errorf("the other stream got %q", got)
		}
		victim.ask(ads.Request{TypeURL: xdstype.ClusterURL}) // its reader does not wait
		victim.ask(ads.Request{TypeURL: xdstype.ClusterURL})
		f.shards.Detach(victim.id)
		f.shards.Detach(bystander.id)
		synctest.Wait()
		fig := f.shards.Stats()[0]
		if fig.Members+fig.Classes+fig.Cohorts+fig.Connecting != 0 || f.shards.workers[0].timers.queue.Len() != 0 {
			t.Errorf("left: %+v", fig)
		}
	})
}

// A class whose new ResourceSet makes the worker panic stays at its last one, and takes the next.
func TestAPanicLeavesAClassAtItsLastTarget(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1 y=1")
		one, two := class("one"), class("two")
		a, b := f.connect("a").place(one, f.set("x=1", "")), f.connect("b").place(two, f.set("y=1", ""))
		a.take()
		b.take()
		f.breakOn("the desired of a class", 0)
		f.advance(one, f.set("x=2", ""))
		expect(t, "while it panics", a.take(), "")
		f.breakOn("nothing", 0)
		f.shards.Advanced(map[*classes.Class]*classes.ResourceSet{two: f.set("y=3", ""), one: f.set("x=3", "")},
			classes.Endpoints{})
		synctest.Wait()
		expect(t, "a", a.take(), "CDS x=3")
		expect(t, "b", b.take(), "CDS y=3")
		if len(f.faults) != 1 || f.faults[0].Proxy != nil {
			t.Errorf("faults %+v", f.faults)
		}
	})
}

// Endpoints whose resource makes the worker panic stay as they were; those of others change.
func TestAPanicLeavesEndpointsAsTheyWere(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1 y=1")
		a := f.connect("a").place(class("one"), f.set("x=1 y=1", ""))
		a.take()
		a.endpoints("x", "y").take()
		f.breakOn("the endpoints of x", 0)
		f.table("x=2 y=2")
		expect(t, "others", a.take(), "EDS y=2")
		f.breakOn("nothing", 0)
		f.table("x=3")
		expect(t, "afterwards", a.take(), "EDS x=3")
	})
}

// A query that panics does not keep who asked waiting.
func TestAPanicInAQuery(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		f.breakOn("a query", 0)
		if got := f.shards.Clients(); len(got) != 0 {
			t.Errorf("clients %v", got)
		}
	})
}
