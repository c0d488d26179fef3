package quota

import (
	"sync"
	"time"
)

const (
	// burst is how long a caller saves up what it does not use.
	burst = 10 * time.Second
	// maxCallers is how many callers a Rate tells apart. Those beyond share one allowance.
	maxCallers = 1 << 16
	// sweepEvery is the least time between two looks for callers that can be forgotten.
	sweepEvery = time.Second
)

// Rate bounds how often each caller does something: so many times a second, and ten seconds' worth at once. A nil Rate
// allows everything.
type Rate struct {
	// Immutable after NewRate.
	each time.Duration // how long it takes to regain the allowance for one
	now  func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	full  map[Caller]time.Time // when a caller has its full allowance again
	swept time.Time
	sweep int // how many callers there may be until the next look
}

// NewRate returns a Rate of so many times a second; nil, which allows everything, for 0. now is the clock.
func NewRate(perSecond int, now func() time.Time) *Rate {
	if perSecond <= 0 {
		return nil
	}
	return &Rate{each: time.Second / time.Duration(perSecond), now: now, full: map[Caller]time.Time{}}
}

// Take reports whether a caller may do something n times now, and counts that. An allowance that is not used up covers
// any n; what is too much is owed. With n = 0 Take only asks.
func (r *Rate) Take(c Caller, n int) bool {
	if r == nil {
		return true
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	full, known := r.full[c]
	if !known {
		if r.forget(now); len(r.full) >= maxCallers {
			c = Caller{}
			full = r.full[c]
		}
	}
	if full.Before(now) {
		full = now
	}
	if full.Sub(now) >= burst {
		return false
	}
	if n > 0 {
		r.full[c] = full.Add(time.Duration(n) * r.each)
	}
	return true
}

// forget drops callers that have their full allowance, when the number of callers has doubled since it last did. The
// caller holds mu.
func (r *Rate) forget(now time.Time) {
	if len(r.full) < r.sweep || now.Sub(r.swept) < sweepEvery {
		return
	}
	for c, full := range r.full {
		if !full.After(now) {
			delete(r.full, c)
		}
	}
	r.swept, r.sweep = now, min(2*len(r.full), maxCallers)
}
