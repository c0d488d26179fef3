package plan

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestDebounce: without a setting the first change after quiet is planned at once; with one it waits until none has
// come for After, at most for Max.
func TestDebounce(t *testing.T) {
	for _, c := range []struct {
		name       string
		after, max time.Duration
		every      time.Duration // between changes
		changes    int
		steps      int           // with changes in them, until the first change is planned and quiet returns
		first      time.Duration // when the first step is taken
	}{
		{"none", 0, 0, 30 * time.Millisecond, 3, 3, 0},
		{"quiet ends it", 100 * time.Millisecond, 10 * time.Second, 30 * time.Millisecond, 3, 1,
			160 * time.Millisecond},
		{"the longest wait ends it", 100 * time.Millisecond, 150 * time.Millisecond, 60 * time.Millisecond, 4, 2,
			150 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var taken []time.Duration
				var start time.Time
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				p := NewPlanner(NewTables(), newRecorder(), Options{DebounceAfter: c.after, DebounceMax: c.max,
					Now: time.Now, After: time.After,
					Took: func(s Step) { taken = append(taken, time.Since(start)) }})
				go p.Run(ctx)
				b := snapshot.NewBuilder(p)
				snapshottest.Apply(b, &snapshottest.Batch{Mesh: testMesh(0)})
				<-time.After(time.Minute)
				synctest.Wait()
				taken, start = nil, time.Now()
				for i := range c.changes {
					k := value.ServiceKey{Host: "a.b", Namespace: "b"}
					snapshottest.Apply(b, &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{k: {ServiceKey: k,
						Created: int64(i + 1)}}})
					<-time.After(c.every)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				if len(taken) != c.steps || taken[0] != c.first {
					t.Errorf("steps at %v, want %d, the first at %v", taken, c.steps, c.first)
				}
			})
		})
	}
}
