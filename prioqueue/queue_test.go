package prioqueue_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/prioqueue"
)

type item struct {
	rank     int
	position prioqueue.Position
}

// Whatever is put, moved, taken and removed, the least item comes first: as in a list that is sorted each time.
func TestQueueAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := prioqueue.New(func(a, b *item) bool { return a.rank < b.rank },
			func(i *item) *prioqueue.Position { return &i.position })
		var all, in []*item
		for range 20 {
			all = append(all, &item{})
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			it := rapid.SampledFrom(all).Draw(t, "item")
			switch rapid.SampledFrom([]string{"put", "put", "take", "remove"}).Draw(t, "step") {
			case "put":
				it.rank = rapid.IntRange(0, 9).Draw(t, "rank")
				if q.Put(it); !slices.Contains(in, it) {
					in = append(in, it)
				}
			case "remove":
				q.Remove(it)
				in = slices.DeleteFunc(in, func(o *item) bool { return o == it })
			case "take":
				if len(in) == 0 {
					continue
				}
				least := slices.MinFunc(in, func(a, b *item) int { return a.rank - b.rank }).rank
				first := q.First()
				if got := q.Take(); got != first || got.rank != least {
					t.Fatalf("takes %d, want %d", got.rank, least)
				}
				in = slices.DeleteFunc(in, func(o *item) bool { return o == first })
			}
			for _, it := range all {
				if it.position.Queued() != slices.Contains(in, it) {
					t.Fatal("an item does not know whether it is in the queue")
				}
			}
			if q.Len() != len(in) || len(slices.Collect(q.All())) != len(in) {
				t.Fatalf("%d items, want %d", q.Len(), len(in))
			}
		}
	})
}
