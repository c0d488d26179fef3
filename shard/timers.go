package shard

import (
	"time"

	"github.com/pilotd/pilotd/prioqueue"
)

// timers are the members with a Deadline, the earliest first. Owned by the worker goroutine.
type timers struct{ queue *prioqueue.Queue[*client] }

func newTimers() timers {
	return timers{prioqueue.New(func(a, b *client) bool { return a.due.Before(b.due) },
		func(m *client) *prioqueue.Position { return &m.timer })}
}

// set makes m due at the time at, or never if at is zero.
func (t timers) set(m *client, at time.Time) {
	switch {
	case at.IsZero():
		t.queue.Remove(m)
	case !m.timer.Queued() || !m.due.Equal(at):
		m.due = at
		t.queue.Put(m)
	}
}

// remove makes m due never.
func (t timers) remove(m *client) { t.queue.Remove(m) }

// pop takes out the next member that is due at now, or nil.
func (t timers) pop(now time.Time) *client {
	if t.queue.Len() == 0 || t.queue.First().due.After(now) {
		return nil
	}
	return t.queue.Take()
}

// next returns when the next member is due; zero for never.
func (t timers) next() time.Time {
	if t.queue.Len() == 0 {
		return time.Time{}
	}
	return t.queue.First().due
}
