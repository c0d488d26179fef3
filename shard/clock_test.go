package shard

import (
	"testing"
	"time"

	"github.com/pilotd/pilotd/shard/ads"
)

// The machine's clock is set forth and back; what has passed is told right all the same, in numbers too, and people are
// told the time that the machine's clock says.
func TestTheClockDoesNotJump(t *testing.T) {
	began := time.Now()
	passed := 90 * time.Second
	later := began.Add(passed) // Has both: a wall clock and what has passed.
	reading := began
	c := newClock(func() time.Time { return reading })
	first := c.now()
	reading = later
	if got := c.now().Sub(first); got != passed {
		t.Errorf("%v have passed, want %v", got, passed)
	}
	if got := c.now().UnixNano() - first.UnixNano(); got != int64(passed) {
		t.Errorf("%v have passed by the numbers, want %v", time.Duration(got), passed)
	}
	if got := c.wall(first); !got.Equal(began) {
		t.Errorf("people are told %v, want %v", got, began)
	}
	if got := c.wall(time.Time{}); !got.IsZero() {
		t.Errorf("no time is told as %v", got)
	}
	st := c.told(ads.Status{Sent: ads.Mark{Time: time.Unix(0, first.UnixNano())}})
	if !st.Sent.Time.Equal(began) || !st.Acked.Time.IsZero() {
		t.Errorf("told %+v", st)
	}
}
