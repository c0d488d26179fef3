package scenario

import (
	"slices"
	"sync"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
)

// arrivals are the clients that come, or come back: who has all that it asked for.
type arrivals struct {
	mu sync.Mutex
	// Guarded by mu.
	begun   time.Time
	missing []bool // by client
	left    int
	after   measure.Histogram
	waiting chan struct{} // closed when none is missing
}

// expect begins anew: clients are awaited, those that who says, or all.
func (a *arrivals) expect(clients int, who func(client int) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun, a.missing, a.left, a.after, a.waiting = time.Now(), make([]bool, clients), 0, measure.Histogram{}, nil
	for i := range a.missing {
		if who == nil || who(i) {
			a.missing[i] = true
			a.left++
		}
	}
}

// ready notes that a client has everything.
func (a *arrivals) ready(client int, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.missing[client] {
		return
	}
	a.missing[client] = false
	a.left--
	a.after.Add(at.Sub(a.begun))
	if a.left == 0 && a.waiting != nil {
		close(a.waiting)
		a.waiting = nil
	}
}

// all returns a channel that is closed when none is missing.
func (a *arrivals) all() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := make(chan struct{})
	if a.left == 0 {
		close(done)
	} else {
		a.waiting = done
	}
	return done
}

// count returns how many are missing.
func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

// first returns the first client that is missing; 0 if none is.
func (a *arrivals) first() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(0, slices.Index(a.missing, true))
}

// end fills in a phase.
func (a *arrivals) end(p *Phase) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.Missing, p.Latency, p.Distribution = a.left, a.after.Latency(), a.after.Percentiles()
}
