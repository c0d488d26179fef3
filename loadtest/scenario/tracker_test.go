package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/xdstype"
)

// A client that is overtaken has the older change with the newer one, and its wait counts from the older one.
func TestTrackerCountsFromTheOldestUnseen(t *testing.T) {
	start := time.Unix(1000, 0)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	var tr tracker
	tr.begin(series{of: xdstype.Endpoint, lanes: 2, base: 10, start: start}, 3, func(i, _ int) bool { return i < 2 })
	for n := range 4 { // changes 11 to 14, in lanes 0 1 0 1
		concerned, err := tr.write(func(lane, number int) (time.Time, error) {
			if lane != n%2 || number != 11+n {
				t.Errorf("change %d is %d in lane %d", n, number, lane)
			}
			return second(n), nil
		})
		if err != nil || concerned != 2 {
			t.Fatal(concerned, err)
		}
	}
	all := tr.reached(0)
	tr.received(0, second(5), &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{11}})
	tr.received(0, second(6), &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{13, 14}})
	// old, and of no change
	tr.received(0, second(7), &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{14, 12, 3, 99}})
	// not what is tracked
	tr.received(1, second(8), &sidecar.Receipt{Type: xdstype.Route, Marks: []int{13, 14}})
	tr.received(2, second(8), &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{13}}) // absent
	select {
	case <-all:
		t.Fatal("client 1 has nothing yet")
	default:
	}
	tr.received(1, second(9), &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{13, 14}})
	<-all
	var p Phase
	tr.end(&p)
	if l := p.Latency; p.Missing != 0 || l.Samples != 5 || l.First != 4*time.Second || l.Last != 9*time.Second {
		t.Errorf("%+v", p)
	}
	var samples []int
	for _, l := range p.Staleness {
		samples = append(samples, l.Samples)
	}
	if !slices.Equal(samples, []int{0, 0, 0, 0, 0, 1, 2, 0, 0, 2}) {
		t.Error(samples)
	}
}

// The numbers that changes say begin again; which change is meant is still known.
func TestTrackerKnowsNumbersThatReturn(t *testing.T) {
	start := time.Unix(1000, 0)
	var tr tracker
	tr.begin(series{of: xdstype.Endpoint, lanes: 1, base: mesh.LastMark - 1, start: start}, 1,
		func(int, int) bool { return true })
	for n := range 3 {
		_, err := tr.write(func(_, mark int) (time.Time, error) {
			if want := []int{mesh.LastMark, 1, 2}[n]; mark != want {
				t.Errorf("change %d says %d", n, mark)
			}
			return start, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			tr.received(0, start, &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{mesh.LastMark - 1}})
		}
	}
	if _, missing := tr.next(); missing != 3 {
		t.Error(missing, "missing after the receipt of what was before")
	}
	tr.received(0, start, &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{1}})
	if _, missing := tr.next(); missing != 1 {
		t.Error(missing, "missing after change 2")
	}
	tr.received(0, start, &sidecar.Receipt{Type: xdstype.Endpoint, Marks: []int{mesh.LastMark, 2}})
	if _, missing := tr.next(); missing != 0 {
		t.Error(missing, "missing")
	}
}

// A removal is received when what was there is gone.
func TestTrackerFollowsWhatIsLost(t *testing.T) {
	var tr tracker
	tr.begin(series{of: xdstype.Route, lost: true, lanes: 1, start: time.Unix(0, 0)}, 1,
		func(int, int) bool { return true })
	if _, err := tr.write(func(int, int) (time.Time, error) { return time.Unix(1, 0), nil }); err != nil {
		t.Fatal(err)
	}
	tr.received(0, time.Unix(2, 0), &sidecar.Receipt{Type: xdstype.Route, Marks: []int{1}})
	if _, missing := tr.next(); missing != 1 {
		t.Error("received while it comes")
	}
	tr.received(0, time.Unix(3, 0), &sidecar.Receipt{Type: xdstype.Route, Lost: []int{1}})
	if l, missing := tr.next(); missing != 0 || l.Last != 2*time.Second {
		t.Error(l, missing)
	}
}
