package shard

import (
	"time"

	"github.com/pilotd/pilotd/shard/ads"
)

// clock tells the time as it was at the start and what has passed since, so that it never jumps when somebody sets the
// machine's clock: readings are kept as numbers too, and those have to say what time has really passed. Immutable.
type clock struct {
	read  func() time.Time
	start time.Time
}

func newClock(read func() time.Time) clock { return clock{read, read()} }

// now returns the time by this clock. Readings of time.Now know what time has passed between them, whatever the
// machine's clock was set to.
func (c clock) now() time.Time { return c.start.Add(c.read().Sub(c.start)) }

// wall returns what the machine's clock, as it is set now, says of a time by this clock. It is for people alone.
func (c clock) wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return c.read().Round(0).Add(t.Sub(c.now()))
}

// told returns a Status with its times as the machine's clock says them.
func (c clock) told(st ads.Status) ads.Status {
	st.Sent.Time, st.Acked.Time, st.Refused.Time = c.wall(st.Sent.Time), c.wall(st.Acked.Time), c.wall(st.Refused.Time)
	return st
}
