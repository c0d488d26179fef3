package quota

import (
	"sync"
	"time"
)

const (
	// burst is for how long unused allowance adds up.
	burst = 10 * time.Second
	// maxCallers is how many callers a Rate tells apart. All others share one allowance.
	maxCallers = 1 << 16
	// sweepEvery is the least time between two searches for callers that can be forgotten.
	sweepEvery = time.Second
)

// Rate limits how often each caller does something: a number of times in a second, and up to ten seconds' worth at
// once. A nil Rate allows everything.
type Rate struct {
	// Immutable after NewRate.
	each time.Duration // the time in which the allowance grows by one
	now  func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	full  map[Caller]time.Time // when the caller's allowance is full again
	swept time.Time
	sweep int // the number of callers at which the next search begins
}

// NewRate returns a Rate with this many times in a second, or nil, which allows everything, for 0. now returns the
// time.
func NewRate(perSecond int, now func() time.Time) *Rate {
	if perSecond <= 0 {
		return nil
	}
	return &Rate{each: time.Second / time.Duration(perSecond), now: now, full: map[Caller]time.Time{}}
}

// Take reports whether a caller may do something n times now, and charges it. Any allowance that is left covers any n;
// the excess becomes debt. With n = 0 Take only asks.
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

// Wait returns in which time Take will allow a caller something; 0 if it does now.
func (r *Rate) Wait(c Caller) time.Duration {
	if r == nil {
		return 0
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	full, known := r.full[c]
	if !known && len(r.full) >= maxCallers {
		full = r.full[Caller{}]
	}
	if full.Before(now) {
		return 0
	}
	return max(full.Sub(now)-burst+1, 0)
}

// forget drops callers whose allowance is full, once the number of callers has doubled since the last time. The caller
// holds mu.
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
