package probe

import (
	"context"
	"time"
)

// Schedule says how often to ask, and when to believe the answers.
type Schedule struct {
	// Delay passes before the first question, Period between questions.
	Delay, Period time.Duration
	// Success and Failure are how many equal answers in a row change the verdict.
	Success, Failure int
}

// Watch asks until ctx ends, and tells each change of the verdict; nil is well. The first answers count towards the
// verdict like all others; until one is reached nothing is told.
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

// verdict is what answers in a row say.
type verdict struct {
	schedule    Schedule
	known, well bool
	last        bool
	inRow       int
}

// take takes an answer and reports whether the verdict has changed.
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
