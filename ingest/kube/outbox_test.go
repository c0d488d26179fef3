package kube

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// However updates are cut into deliveries, the sink ends with the same objects and rejections.
func TestOutboxMergesWithoutLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		merged, one := sinktest.New(), sinktest.New()
		source, single, bad := detached(merged), detached(one), map[value.ObjectKey]bool{}
		o := source.outbox
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := virtualService(strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "object")))
			l := update{accept: bad[key]}
			switch rapid.SampledFrom([]string{"put", "delete", "refuse"}).Draw(t, "what") {
			case "put":
				l.event = &ingest.Event{Key: key, Object: i}
			case "delete":
				l.event = &ingest.Event{Key: key}
			case "refuse":
				l.reject = &ingest.Rejection{Key: key, Reason: strconv.Itoa(i)}
			}
			bad[key] = l.reject != nil
			single.hand(updates{objects: map[value.ObjectKey]update{key: l}})
			if rapid.Bool().Draw(t, "alone") {
				o.post(key, l)
			} else {
				o.put(map[value.ObjectKey]update{key: l})
			}
			if rapid.Bool().Draw(t, "deliver") {
				source.hand(o.take())
			}
		}
		source.hand(o.take())
		a, b := merged.Now(), one.Now()
		if len(a.Objects) != len(b.Objects) || len(a.Rejected) != len(b.Rejected) {
			t.Fatalf("merged %v %v, one by one %v %v", a.Objects, a.Rejected, b.Objects, b.Rejected)
		}
		for key, e := range b.Objects {
			if a.Objects[key] != e {
				t.Fatalf("merged %v, one by one %v", a.Objects[key], e)
			}
		}
		for place, r := range b.Rejected {
			if len(a.Rejected[place]) != 1 || a.Rejected[place][0] != r[0] {
				t.Fatalf("merged %v, one by one %v", a.Rejected[place], r)
			}
		}
	})
}

func TestSyncedComesAfterAllThatWasExpected(t *testing.T) {
	r := sinktest.New()
	source := detached(r)
	o := source.outbox
	o.expect(kind{Kind: &ingest.Kind{}, resource: "a"})
	o.expect(kind{Kind: &ingest.Kind{}, resource: "b"})
	o.put(map[value.ObjectKey]update{virtualService("x"): {event: &ingest.Event{Key: virtualService("x"), Object: 1}}})
	o.arrived("a")
	o.expect(kind{Kind: &ingest.Kind{}, resource: "c"})
	o.arrived("b")
	source.hand(o.take())
	if told := r.Now(); len(told.Synced) != 0 || len(told.Objects) != 1 || len(o.missing()) != 1 {
		t.Errorf("told %v, missing %v", told, o.missing())
	}
	o.arrived("c")
	o.expect(kind{Kind: &ingest.Kind{}, resource: "d"}) // A kind that comes later does not count.
	o.arrived("d")
	source.hand(o.take())
	if told := r.Now(); len(told.Synced) != 1 {
		t.Errorf("synced %v", told.Synced)
	}
}
