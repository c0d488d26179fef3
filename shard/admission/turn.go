package admission

import (
	"time"

	"github.com/pilotd/pilotd/prioqueue"
)

// Priority says how much a client that connects needs its answers.
type Priority uint8

// The priorities, from the highest to the lowest.
const (
	// NewProxy has nothing: it serves no traffic.
	NewProxy Priority = iota
	// StaleProxy has a configuration, but not the one that it should have.
	StaleProxy
	// ReturningProxy has a configuration; whether it is the right one is known when the planner has answered.
	ReturningProxy
	// CurrentProxy has the configuration that it should have.
	CurrentProxy

	// Priorities is the number of priorities.
	Priorities = 4
)

func (p Priority) String() string {
	return [Priorities]string{"new", "stale", "returning", "current"}[p]
}

// handicap returns what is added to the time at which a client came, by its priority. So those that need more go first,
// and yet nobody waits for a client that comes more than five seconds later, whatever the other needs.
func (p Priority) handicap() time.Duration {
	return [Priorities]time.Duration{NewProxy: 0, StaleProxy: time.Second, ReturningProxy: 2 * time.Second,
		CurrentProxy: 5 * time.Second}[p]
}

// Turn is the position of a client in the order of all that connect. No two clients have equal Turns. The zero Turn is
// nobody's.
type Turn struct {
	since time.Time // with the handicap
	id    uint64
}

// TurnOf returns the Turn of the client id, which came at the time came.
func TurnOf(id uint64, came time.Time, p Priority) Turn { return Turn{came.Add(p.handicap()), id} }

// Before reports whether t comes before o.
func (t Turn) Before(o Turn) bool {
	if order := t.since.Compare(o.since); order != 0 {
		return order < 0
	}
	return t.id < o.id
}

// Waiter is a client in a Line.
type Waiter[C any] struct {
	// Immutable.
	Client   C
	Turn     Turn
	Priority Priority

	position prioqueue.Position // owned by the Line
}

// Line orders those that wait, the next one first.
type Line[C any] = prioqueue.Queue[*Waiter[C]]

// NewLine makes an empty Line.
func NewLine[C any]() *Line[C] {
	return prioqueue.New(func(a, b *Waiter[C]) bool { return a.Turn.Before(b.Turn) },
		func(w *Waiter[C]) *prioqueue.Position { return &w.position })
}
