package shard

import (
	"time"

	"github.com/pilotd/pilotd/shard/ads"
)

// clock tells the time at the start of the process plus what has passed since. So it does not jump when somebody sets
// the machine's clock, also where readings are kept as plain numbers. Immutable.
type clock struct {
	read  func() time.Time
	start time.Time
}

func newClock(read func() time.Time) clock { return clock{read, read()} }

// now returns the time by this clock. It uses the monotonic part of time.Now's readings.
func (c clock) now() time.Time { return c.start.Add(c.read().Sub(c.start)) }

// wall returns what the machine's clock, as it is set now, says of a time by this clock. It is for people to read, and
// not to compute with.
func (c clock) wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return c.read().Round(0).Add(t.Sub(c.now()))
}

// told returns a Status with its times by the machine's clock.
func (c clock) told(st ads.Status) ads.Status {
	st.Sent.Time, st.Acked.Time, st.Refused.Time = c.wall(st.Sent.Time), c.wall(st.Acked.Time), c.wall(st.Refused.Time)
	return st
}
