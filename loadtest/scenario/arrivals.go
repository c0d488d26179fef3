package scenario

import (
	"slices"
	"sync"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
)

// arrivals tracks which of the clients that connect, or reconnect, have everything that they asked for.
type arrivals struct {
	mu sync.Mutex
	// Guarded by mu.
	begun   time.Time
	missing []bool // by client
	left    int
	after   measure.Histogram
	waiting chan struct{} // closed once no client is missing
}

// expect starts anew and waits for the clients that who selects; nil selects all.
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

// ready records that a client has everything.
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

// all returns a channel that is closed once no client is missing.
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

// count returns the number of missing clients.
func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

// first returns the lowest missing client; 0 if none is missing.
func (a *arrivals) first() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(0, slices.Index(a.missing, true))
}

// end fills in the results of a phase.
func (a *arrivals) end(p *Phase) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.Missing, p.Latency, p.Distribution = a.left, a.after.Latency(), a.after.Percentiles()
}
