package plan

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// slowSink takes its time to be told of a proxy, and notes in which order it is told of what.
type slowSink struct {
	*recorder
	takes time.Duration
	told  []string
	then  func() // called after the first proxy
}

func (s *slowSink) Assigned(id uint64, c *classes.Class, w *classes.ResourceSet) {
	s.recorder.Assigned(id, c, w)
	s.told = append(s.told, fmt.Sprint(id))
	<-time.After(s.takes)
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
}

func (s *slowSink) Advanced(sets map[*classes.Class]*classes.ResourceSet, e classes.Endpoints) {
	s.recorder.Advanced(sets, e)
	s.told = append(s.told, "change")
}

// A change does not wait until all who have come are planned for, and a Barrier does.
func TestChangeOvertakesArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{recorder: newRecorder(), takes: 2 * time.Millisecond}
		p, stop := start(sink)
		defer stop()
		b := snapshot.NewBuilder(p)
		snapshottest.Apply(b, &snapshottest.Batch{Mesh: testMesh(0)})
		synctest.Wait()
		sink.told = nil
		sink.then = func() {
			k := value.ServiceKey{Host: "a.b", Namespace: "b"}
			snapshottest.Apply(b, &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{k: {ServiceKey: k,
				Export: value.Visibility{Public: true},
				Ports:  []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP}}}}})
			p.Detach(8)
		}
		p.mu.Lock() // so that the planner finds all of them at once
		for i := range uint64(9) {
			p.arrived = append(p.arrived, arrival{i + 1,
				&proxy.Proxy{ID: fmt.Sprint(i), Namespace: "b", Addresses: []string{fmt.Sprint("10.0.0.", i)}}})
		}
		p.mu.Unlock()
		p.signal()
		if err := p.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(sink.told), "[1 2 3 change 4 5 6 7 9]"; got != want {
			t.Errorf("told of %s, want %s", got, want)
		}
	})
}
