package probe

import (
	"context"
	"time"
)

// Schedule says how often a probe runs, and how many answers change the verdict.
type Schedule struct {
	// Delay passes before the first probe, Period between probes.
	Delay, Period time.Duration
	// Success and Failure are how many healthy or unhealthy answers in a row change the verdict.
	Success, Failure int
}

// Watch runs a probe until ctx ends, and calls told on each change of the verdict, with nil for healthy. It does not
// call told before a first verdict is reached.
func (a Asker) Watch(ctx context.Context, p *Probe, s Schedule, told func(error)) {
	v := verdict{schedule: s}
	wait := time.NewTimer(s.Delay)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		_, err := a.Ask(ctx, p, nil)
		if ctx.Err() != nil {
			return
		}
		if v.take(err == nil) {
			told(err)
		}
		wait.Reset(s.Period)
	}
}

// verdict is the state of a series of answers.
type verdict struct {
	schedule    Schedule
	known, well bool
	last        bool
	inRow       int
}

// take adds an answer and reports whether the verdict has changed.
func (v *verdict) take(well bool) bool {
	if v.inRow == 0 || well != v.last {
		v.last, v.inRow = well, 0
	}
	v.inRow++
	need := v.schedule.Failure
	if well {
		need = v.schedule.Success
	}
	if v.inRow < max(need, 1) || v.known && v.well == well {
		return false
	}
	v.known, v.well = true, well
	return true
}
