package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
)

// sample takes a Sample each second until ctx ends.
func (r *run) sample(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			r.takeSample(ctx, time.Now()) // the tick may have come late
		}
	}
}

// takeSample adds a Sample to the report, and writes it to Progress.
func (r *run) takeSample(ctx context.Context, at time.Time) {
	s := Sample{Process: r.server(ctx), Streams: r.fleet.Streams(), Ready: r.Total() - r.coming.count()}
	for _, c := range r.fleet.Counts() {
		s.Messages += c.Messages
		s.Bytes += c.Bytes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Seconds, s.Phase = at.Sub(r.report.Began).Seconds(), r.phase
	r.peak = max(r.peak, s.Resident)
	r.report.Samples = append(r.report.Samples, s)
	if r.Progress != nil {
		if r.report.Ended > 0 && !r.said {
			r.said = true
			fmt.Fprintf(r.Progress, "a stream ended: %s\n", r.report.FirstError)
		}
		fmt.Fprintf(r.Progress,
			"%6.1fs  %-9s  %d/%d have everything, %d streams, %d ended  %d messages, %s  server: CPU %s, memory %s\n",
			s.Seconds, s.Phase,
			s.Ready, r.Total(), s.Streams, r.report.Ended, s.Messages, Size(s.Bytes), measure.Short(s.CPU), Size(s.Resident))
	}
}

// enough is the number of samples, one minute of them, from which a slope can be told.
const enough = 60

// growth returns the growth of memory in a phase, in bytes a second: the slope of the line through the second half of
// its samples.
func growth(samples []Sample, phase string) float64 {
	end := len(samples)
	begin := end
	for begin > 0 && samples[begin-1].Phase == phase {
		begin--
	}
	half := samples[(begin+end)/2 : end]
	if len(half) < enough {
		return 0
	}
	var n, x, y, xx, xy float64
	for _, s := range half {
		at, memory := s.Seconds-half[0].Seconds, float64(s.Resident)
		n, x, y, xx, xy = n+1, x+at, y+memory, xx+at*at, xy+at*memory
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// quiet waits until no message has come for a second.
func (r *run) quiet(ctx context.Context) error {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for before := int64(-1); ; {
		now := int64(0)
		for _, c := range r.fleet.Counts() {
			now += c.Messages
		}
		if now == before {
			return nil
		}
		before = now
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass waits for Duration.
func (r *run) pass(ctx context.Context) error {
	timer := time.NewTimer(r.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
