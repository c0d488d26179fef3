package scenario

import (
	"testing"
	"time"

	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// A client that is overtaken has the older change with the newer one, and its wait counts from the older one.
func TestTrackerCountsFromTheOldestUnseen(t *testing.T) {
	start := time.Unix(1000, 0)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	var tr tracker
	tr.begin(sidecar.Endpoint, 3, 2, 10, func(i int) bool { return i == 2 })
	for n := range 4 { // changes 11 to 14, in lanes 0 1 0 1
		err := tr.write(func(lane, number int) (time.Time, error) {
			if lane != n%2 || number != 11+n {
				t.Errorf("change %d is %d in lane %d", n, number, lane)
			}
			return second(n), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := tr.all()
	tr.received(0, second(5), &sidecar.Receipt{Type: sidecar.Endpoint, Marks: []int{11}})
	tr.received(0, second(6), &sidecar.Receipt{Type: sidecar.Endpoint, Marks: []int{13, 14}})
	tr.received(0, second(7), &sidecar.Receipt{Type: sidecar.Endpoint, Marks: []int{14, 12, 3, 99}}) // old, and of no change
	tr.received(1, second(8), &sidecar.Receipt{Type: sidecar.Route, Marks: []int{13, 14}})           // not what is tracked
	tr.received(2, second(8), &sidecar.Receipt{Type: sidecar.Endpoint, Marks: []int{13}})            // absent
	select {
	case <-all:
		t.Fatal("client 1 has nothing yet")
	default:
	}
	tr.received(1, second(9), &sidecar.Receipt{Type: sidecar.Endpoint, Marks: []int{13, 14}})
	<-all
	samples, missing := tr.take()
	if missing != 0 {
		t.Error(missing, "missing")
	}
	want := []time.Duration{5, 4, 5, 9, 8}
	for i, got := range latencies(samples) {
		if i >= len(want) || got != want[i]*time.Second {
			t.Errorf("sample %d: %s", i, got)
		}
	}
	if bySecond := seconds(samples, second(5)); len(bySecond) != 5 || len(bySecond[0]) != 1 || len(bySecond[1]) != 2 || len(bySecond[4]) != 2 {
		t.Error(bySecond)
	}
}
