package discovery

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// TestPendingIsBounded is invariant I5: while thousands of events come, a client that reads and does not answer has one
// response of each type under way and one request that waits, whatever the number of events; what the shards hold is
// bounded by their proxies. Once it answers, a few responses bring it to where it should be.
func TestPendingIsBounded(t *testing.T) {
	inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
		g := generator{rand.New(rand.NewPCG(*seed, 5))}
		objects := map[value.ObjectKey]ingest.Event{}
		for _, e := range sampleMesh() {
			objects[e.Key] = e
		}
		r.everyKindOfProxy()
		for _, c := range r.clients {
			c.stall()
		}
		marks := r.marks()
		for range 3000 {
			e := g.event()
			objects[e.Key] = e
			r.server.Store.Apply([]ingest.Event{e})
			r.checkSlots(t)
			if g.IntN(20) == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		for _, c := range r.clients {
			r.checkOneOfEach(t, c, marks[c.id])
		}
		marks = r.marks()
		for _, c := range r.clients {
			c.resume()
		}
		r.converge()
		for _, c := range r.clients {
			if n := c.count() - marks[c.id]; n > 16 {
				t.Errorf("client %d got %d responses after it answered", c.id, n)
			}
		}
		checkScratch(t, r, objects, 0, nil)
	})
}

// checkSlots looks at what has come to the shards and is not taken yet: of each client, class and service at most one
// thing.
func (r *running) checkSlots(t *testing.T) {
	t.Helper()
	services := r.server.Builder.View().Snapshot.Counts()[value.KindService]
	for i, f := range r.server.Shards.Stats() {
		if f.Inbox > len(r.clients) || f.ResourceSets > len(r.clients) || f.Services > services+64 ||
			f.Members+f.Classes+f.Cohorts > 3*len(r.clients) {
			t.Fatalf("shard %d holds %+v for %d clients and %d services", i, f, len(r.clients), services)
		}
	}
}

// checkOneOfEach looks at a client that does not answer: since the mark it got at most one response of each type, and
// the shards know of no more than that.
func (r *running) checkOneOfEach(t *testing.T, c *client, mark int) {
	t.Helper()
	count := map[string]int{}
	for _, x := range c.responses(mark) {
		count[x.url]++
	}
	for url, n := range count {
		if n > 1 {
			t.Errorf("client %d (delta %v) has %d un-ACKed responses of %s", c.id, c.delta, n, kindOf(url))
		}
	}
	for _, told := range r.server.Shards.Clients() {
		for typ, st := range told.Types {
			if told.ID == c.id && st.Waiting != (count[typ.URL()] == 1) {
				t.Errorf("client %d: %s waits: %v, but %d responses came", c.id, typ, st.Waiting, count[typ.URL()])
			}
		}
	}
	if count[xdstype.ClusterURL] != 1 {
		t.Errorf("client %d got %s", c.id, fmt.Sprint(count))
	}
}
