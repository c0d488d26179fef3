package scenario

import (
	"slices"
	"sync"
	"time"

	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// tracker knows which client has which change. Changes of one type are numbered; they concern lanes objects in turn, so that a later change
// of a lane makes up for an earlier one.
type tracker struct {
	mu sync.Mutex
	// Guarded by mu.
	of      sidecar.Type
	base    int         // the number before the first change
	written []time.Time // when change base+1+i was written
	lanes   int
	last    [][]int32             // by client and lane: the last change, from 1; lane+1-lanes where none
	absent  func(client int) bool // who is not waited for
	present int                   // how many are
	missing int                   // pairs of client and change
	samples []sample
	waiting chan struct{} // closed when nothing is missing
}

// sample is a client that got a change.
type sample struct {
	at    time.Time
	after time.Duration // since the oldest change that it had not had was written
}

// begin starts a series of changes; the first is number base+1. Clients that are absent are not waited for; nil is nobody.
func (t *tracker) begin(of sidecar.Type, clients, lanes, base int, absent func(client int) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of, t.base, t.lanes, t.written, t.samples, t.missing, t.waiting = of, base, lanes, nil, nil, 0, nil
	if t.absent = absent; absent == nil {
		t.absent = func(int) bool { return false }
	}
	t.present = 0
	t.last = make([][]int32, clients)
	for i := range t.last {
		if !t.absent(i) {
			t.present++
		}
		t.last[i] = make([]int32, lanes)
		for lane := range lanes {
			t.last[i][lane] = int32(lane + 1 - lanes)
		}
	}
}

// write makes a change with a call that says when it was made. Nobody's receipt is looked at meanwhile.
func (t *tracker) write(edit func(lane, number int) (time.Time, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.written)
	at, err := edit(n%t.lanes, t.base+1+n)
	if err != nil {
		return err
	}
	t.written = append(t.written, at)
	t.missing += t.present
	return nil
}

// received takes what a client got.
func (t *tracker) received(client int, at time.Time, r *sidecar.Receipt) {
	if len(r.Marks) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Type != t.of || t.absent == nil || t.absent(client) {
		return
	}
	for _, mark := range r.Marks {
		n := mark - t.base
		if n < 1 || n > len(t.written) {
			continue
		}
		last := &t.last[client][(n-1)%t.lanes]
		if int(*last) >= n {
			continue
		}
		oldest := int(*last) + t.lanes
		t.missing -= (n - int(*last)) / t.lanes
		*last = int32(n)
		t.samples = append(t.samples, sample{at, at.Sub(t.written[oldest-1])})
	}
	if t.missing == 0 && t.waiting != nil {
		close(t.waiting)
		t.waiting = nil
	}
}

// all is closed when every client has every change written so far.
func (t *tracker) all() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	if t.missing == 0 {
		close(done)
	} else {
		t.waiting = done
	}
	return done
}

// take are the samples since the last take, and how many pairs of client and change are missing.
func (t *tracker) take() (samples []sample, missing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	samples, t.samples = t.samples, nil
	return samples, t.missing
}

func latencies(samples []sample) []time.Duration {
	out := make([]time.Duration, len(samples))
	for i, s := range samples {
		out[i] = s.after
	}
	return out
}

// seconds groups samples by the second since start in which they came.
func seconds(samples []sample, start time.Time) (out [][]time.Duration) {
	for _, s := range samples {
		i := max(0, int(s.at.Sub(start)/time.Second))
		if i >= len(out) {
			out = append(out, slices.Repeat([][]time.Duration{nil}, i+1-len(out))...)
		}
		out[i] = append(out[i], s.after)
	}
	return out
}
