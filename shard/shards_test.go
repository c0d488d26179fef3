package shard

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// Nothing is answered before the class is known: the planner tells it from a complete View.
func TestFirstAnswerWaitsForTheResourceSet(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		s := f.connect("a")
		expect(t, "before the class", s.take(), "")
		s.place(class("c"), f.set("x=1", ""))
		expect(t, "now", s.take(), "CDS x=1")
		expect(t, "endpoints", s.endpoints("x").take(), "EDS x=")
		f.table("x=1")
		expect(t, "other endpoints", s.take(), "EDS x=1")
	})
}

// Members of a class at the same state are given one response; a class with other content its own.
func TestMembersShareAResponse(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1")
		one, two := class("one"), class("two")
		w := f.set("x=1", "")
		a, b := f.connect("a").place(one, w), f.connect("b").place(one, w)
		c := f.connect("c").place(two, f.set("x=1 y=1", ""))
		for _, s := range []*fakeStream{a, b, c} {
			s.take()
		}
		f.shards.Advanced(map[*classes.Class]*classes.ResourceSet{one: f.set("x=2", ""), two: f.set("x=2 y=1", "")},
			classes.Endpoints{})
		synctest.Wait()
		if a.got[0] != b.got[0] || a.got[0] == c.got[0] {
			t.Error("responses are not shared as they should be")
		}
		expect(t, "a", a.take(), "CDS x=2")
		expect(t, "c", c.take(), "CDS x=2")
	})
}

// An endpoint change reaches those that subscribe to the service, in whatever class, and nobody else.
func TestEndpointsReachTheirSubscribers(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1 y=1")
		one, two := class("one"), class("two")
		w := f.set("x=1 y=1", "")
		a, b := f.connect("a").place(one, w), f.connect("b").place(two, f.set("x=1 y=1 z=1", ""))
		c := f.connect("c").place(one, w)
		for _, s := range []*fakeStream{a, b, c} {
			s.take()
		}
		a.endpoints("x").take()
		b.endpoints("x", "y").take()
		c.endpoints("y").take()
		f.table("x=2")
		expect(t, "a", a.take(), "EDS x=2")
		expect(t, "b", b.take(), "EDS x=2")
		expect(t, "c", c.take(), "")
		f.table("x=2")
		expect(t, "no change", a.take()+b.take()+c.take(), "")
	})
}

// A client that reads nothing delays nobody, and holds one response per type however much changes.
func TestStuckStreamDelaysNobody(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=0")
		c := class("c")
		w := f.set("x=0", "")
		good, stuck := f.connect("good").place(c, w), f.connect("stuck").place(c, w)
		stuck.setBacklog(true)
		good.take()
		good.endpoints("x").take()
		stuck.endpoints("x")
		for i := range 100 {
			f.advance(c, f.set("x="+nodeName(i), ""))
			f.table("x=" + nodeName(i))
			want := "CDS x=" + nodeName(i) + "; EDS x=" + nodeName(max(i-1, 0))
			if i == 0 {
				want = "CDS x=node-0; EDS x=0"
			}
			expect(t, "good", good.take(), want)
			expect(t, "good's endpoints", good.take(), "EDS x="+nodeName(i))
			time.Sleep(100 * time.Millisecond) // of fake time
		}
		if n := stuck.holds(); n != 2 {
			t.Errorf("the stuck stream holds %d responses", n)
		}
		stuck.setBacklog(false)
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "when it reads again", stuck.read(true), "CDS x=0; EDS x=0; CDS x=node-99")
		expect(t, "and is brought along", stuck.read(true), "EDS x=node-99")
	})
}

// A flood of requests waits for its own decisions.
func TestFloodDelaysOnlyItsSender(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1")
		s := f.connect("flood")
		sent := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 50 {
				f.shards.Receive(s.id, ads.Request{Delta: true, TypeURL: xdstype.ClusterURL,
					Subscribe: f.shards.opts.Names.Of([]string{"x"})})
				sent++
			}
		}()
		synctest.Wait()
		if sent != 0 {
			t.Errorf("%d requests were taken before the first was decided", sent)
		}
		s.place(class("c"), f.set("x=1", ""))
		<-done
		expect(t, "what it gets", s.read(false), "CDS x=1")
	})
}

// CDS credit comes back after a second, but not for what has not left the process.
func TestCreditByTime(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("")
		c := class("c")
		s := f.connect("a").place(c, f.set("x=1", ""))
		expect(t, "first", s.read(false), "CDS x=1")
		f.advance(c, f.set("x=2", ""))
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		expect(t, "too early", s.read(false), "")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		expect(t, "after a second", s.read(false), "CDS x=2")
		s.setBacklog(true)
		f.advance(c, f.set("x=3", ""))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		expect(t, "while it waits to be written", s.read(false), "")
	})
}

// What a class is told right after its first member came is not lost; older ResourceSets and tables change nothing.
func TestOrderOfThePlannersCalls(t *testing.T) {
	withFleet(t, 3, func(f *fleet) {
		f.table("x=1")
		c := class("c")
		old, now := f.set("x=1", ""), f.set("x=2", "")
		s := f.connect("a")
		f.shards.Assigned(s.id, c, old)
		f.shards.Advanced(map[*classes.Class]*classes.ResourceSet{c: now}, classes.Endpoints{})
		synctest.Wait()
		got := s.take() + s.take()
		if got != "CDS x=2" && got != "CDS x=1CDS x=2" {
			t.Errorf("got %q", got)
		}
		late := f.connect("b").place(c, old)
		expect(t, "one that comes with an older ResourceSet", late.take(), "CDS x=2")
		expect(t, "others then", s.take(), "")
	})
}

// A proxy that moves to another class gets the difference on the same stream, from the shard where it is.
func TestMoveToAnotherClass(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		f.table("x=1 y=1")
		one, two := class("one"), class("two")
		s := f.connect("a").place(one, f.set("x=1 y=1", "r=1"))
		s.take()
		s.endpoints("x").take()
		s.place(two, f.set("x=1 y=2", ""))
		expect(t, "moved", s.take(), "CDS y=2")
		f.table("x=2")
		expect(t, "endpoints", s.take(), "EDS x=2")
		f.advance(one, f.set("x=9", ""))
		expect(t, "its old class", s.take(), "")
		f.advance(two, f.set("x=1 y=3", ""))
		expect(t, "its new class", s.take(), "CDS y=3")
	})
}

// A class of more than 256 members spills to the next shard.
func TestClassSpills(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		f.table("x=1")
		c := class("c")
		w := f.set("x=1", "")
		for i := range 300 {
			f.connect(nodeName(i)).place(c, w)
		}
		fig := f.shards.Stats()
		if a, b := fig[0].Members, fig[1].Members; max(a, b) != 256 || min(a, b) != 44 {
			t.Errorf("%d and %d members", a, b)
		}
		f.advance(c, f.set("x=2", ""))
		n := 0
		for _, cl := range f.shards.Clients() {
			if cl.Revision == f.rev {
				n++
			}
		}
		if n != 300 {
			t.Errorf("%d members have the newest ResourceSet", n)
		}
	})
}

// The versions of a client that refused something are not believed on its next stream, wherever that is placed.
func TestDoubtOutlivesTheStream(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		f.table("")
		one, two := class("one"), class("two")
		w := f.set("x=1 y=1", "")
		s := f.connect("a").place(one, w)
		nonce := s.got[0].Nonce()
		s.read(false)
		s.ask(ads.Request{TypeURL: xdstype.ClusterURL, Nonce: nonce,
			Error: &statuspb.Status{Message: "Error adding/updating cluster(s) y: bad"}})
		expect(t, "correction", s.read(false), "CDS -y x=1")
		f.shards.Detach(s.id)
		if len(f.refusals) != 1 || f.refusals[0].Names[0] != "y" || f.refusals[0].Proxy.ID != "a" {
			t.Errorf("refusals %+v", f.refusals)
		}
		f.lastID++
		again := &fakeStream{fleet: f, id: f.lastID}
		v := f.entry(xdstype.ClusterURL, "x", "1").Version()
		first := ads.Request{Delta: true, TypeURL: xdstype.ClusterURL,
			Initial: f.shards.opts.Names.VersionsOf(map[string]string{"x": v,
				"y": f.entry(xdstype.ClusterURL, "y", "1").Version()})}
		if err := f.shards.Attach(again, &proxy.Proxy{ID: "a"}, first); err != nil {
			t.Fatal(err)
		}
		again.place(two, w)
		expect(t, "in full", again.take(), "CDS x=1 y=1")
		if len(f.shards.doubts.byNode) != 0 {
			t.Error("the doubt stays after the ACK")
		}
	})
}

// Nothing is left of streams that are gone, placed or not, in whatever state.
func TestNothingIsLeft(t *testing.T) {
	withFleet(t, 3, func(f *fleet) {
		f.table("x=1")
		w := f.set("x=1", "")
		var all []*fakeStream
		for i := range 60 {
			s := f.connect(nodeName(i))
			all = append(all, s)
			if i%3 == 0 {
				continue
			}
			c := class(nodeName(i % 7))
			s.place(c, w)
			if i%2 == 0 {
				s.take()
				s.endpoints("x")
			}
			if i%5 == 0 { // something waits for the time
				f.advance(c, f.set("x=2", ""))
			}
		}
		for _, s := range all {
			f.shards.Detach(s.id)
		}
		f.shards.Assigned(all[0].id, class("late"), w)
		synctest.Wait()
		for i, w := range f.shards.workers {
			if len(w.roster.groups)+len(w.roster.byClass)+w.timers.queue.Len()+w.entrance.line.Len() != 0 {
				t.Errorf("shard %d has %d groups, %d timers, %d connecting", i, len(w.roster.groups), w.timers.queue.Len(),
					w.entrance.line.Len())
			}
			if fig := f.shards.Stats()[i]; fig.Members+fig.Cohorts+fig.Classes != 0 {
				t.Errorf("shard %d counts %+v", i, fig)
			}
		}
		if n := len(f.shards.spreads); n != 0 || f.shards.Streams() != 0 || len(f.planner.attached) != 0 {
			t.Errorf("%d spreads, %d streams, %d attached", n, f.shards.Streams(), len(f.planner.attached))
		}
	})
}

// Endpoints that change while a ResourceSet is carried to many are not kept waiting by it: they are looked at after
// every Cohort.
func TestEndpointLaneOvertakes(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1")
		sets := map[*classes.Class]*classes.ResourceSet{}
		var all []*fakeStream
		w, next := f.set("x=1 y=1", ""), f.set("x=1 y=2", "")
		for i := range 10 {
			c := class(nodeName(i))
			s := f.connect(nodeName(i)).place(c, w)
			s.take()
			s.endpoints("x").take()
			all, sets[c] = append(all, s), next
		}
		var order []string
		once := false
		for _, s := range all {
			s.onReceive = func() {
				order = append(order, s.urls[len(s.urls)-1])
				if !once { // the worker is in the middle of the ResourceSet
					once = true
					f.postTable("x=2")
				}
			}
		}
		f.shards.Advanced(sets, classes.Endpoints{})
		synctest.Wait()
		if len(order) != 20 || order[1] != xdstype.EndpointURL || order[10] != xdstype.EndpointURL ||
			order[11] != xdstype.ClusterURL {
			t.Errorf("order %q", order)
		}
	})
}

// A stream over the limit of names is ended, alone.
func TestTooManyNames(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.shards.opts.MaxNames = 2
		f.table("x=1")
		c := class("c")
		w := f.set("x=1", "")
		a, b := f.connect("a").place(c, w), f.connect("b").place(c, w)
		a.endpoints("x", "y", "z")
		if a.closed == nil || b.closed != nil {
			t.Errorf("closed: %v, %v", a.closed, b.closed)
		}
	})
}

// What is told about a client is what it was sent.
func TestWhatIsTold(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		f.table("x=1")
		s := f.connect("a").place(class("c"), f.set("x=1 y=1", ""))
		s.take()
		s.endpoints("x").read(false)
		all := f.shards.Find("a.n")
		if len(all) != 1 || all[0].Class != "c" || len(f.shards.Find("b.n")) != 0 {
			t.Fatalf("found %+v", all)
		}
		cds, eds := all[0].Types[xdstype.Cluster], all[0].Types[xdstype.Endpoint]
		if len(cds.Entries) != 2 || cds.Sent.Nonce != cds.Acked.Nonce || !cds.Wildcard {
			t.Errorf("CDS %+v", cds)
		}
		if len(eds.Entries) != 1 || eds.Entries[0].Name() != "x" || eds.Acked.Nonce != "" || eds.Names != 1 ||
			!eds.Waiting {
			t.Errorf("EDS %+v", eds)
		}
		if _, ok := all[0].Types[xdstype.Route]; ok {
			t.Error("RDS was not asked for")
		}
	})
}

// Others run while a worker sends to many, and need not wait until all have theirs.
func TestOthersRunAmongSends(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const clients = 160
	withFleet(t, 1, func(f *fleet) {
		c, w := class("one"), f.set("x=1", "")
		var sent, seen atomic.Int64
		for i := range clients {
			s := f.connect(nodeName(i)).place(c, w)
			s.take()
			s.onReceive = func() {
				if sent.Add(1) == 1 {
					go func() { seen.Store(sent.Load()) }()
				}
			}
		}
		f.advance(c, f.set("x=2", ""))
		if n := seen.Load(); sent.Load() != clients || n == 0 || n > clients/2 {
			t.Errorf("of %d sends %d had passed when somebody else ran", sent.Load(), n)
		}
	})
}
