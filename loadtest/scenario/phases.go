package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// run runs a scenario after the connect storm.
func (r *run) run(ctx context.Context, name string) error {
	return r.measure(name, func(p *Phase) error {
		switch name {
		case "endpoint":
			return r.changes(ctx, p, sidecar.Endpoint, func(_, n int) (time.Time, error) { return r.Directory.Endpoint(0, n) })
		case "route":
			return r.changes(ctx, p, sidecar.Route, func(_, n int) (time.Time, error) { return r.Directory.Route(n) })
		case "churn":
			return r.churn(ctx, p)
		}
		return r.idle(ctx)
	})
}

// changes makes one change after the other, each when everybody has the one before.
func (r *run) changes(ctx context.Context, p *Phase, of sidecar.Type, edit func(lane, n int) (time.Time, error)) error {
	r.tracker.begin(of, r.Clients, 1, r.marks)
	for range r.Changes {
		if err := r.change(edit); err != nil {
			return err
		}
		err := r.wait(ctx, r.tracker.all())
		samples, missing := r.tracker.take()
		p.Each = append(p.Each, measure.Of(latencies(samples)))
		p.Changes++
		if p.Missing = missing; err != nil {
			return errors.Join(fmt.Errorf("change %d: %d sidecars lack it: %w", p.Changes, missing, err))
		}
	}
	p.Latency = measure.Typical(p.Each)
	return nil
}

// change makes the next change.
func (r *run) change(edit func(lane, n int) (time.Time, error)) error {
	if r.marks == mesh.LastMark {
		return fmt.Errorf("more than %d changes in one run", mesh.LastMark)
	}
	r.marks++
	return r.tracker.write(edit)
}

// churn makes endpoint changes at a rate, of several services in turn, and waits until everybody has the last.
func (r *run) churn(ctx context.Context, p *Phase) error {
	if r.Rate <= 0 {
		return errors.New("churn needs a rate")
	}
	r.tracker.begin(sidecar.Endpoint, r.Clients, r.Directory.Lanes(), r.marks)
	start := time.Now()
	ticks := time.NewTicker(time.Duration(float64(time.Second) / r.Rate))
	defer ticks.Stop()
	for time.Since(start) < r.Duration {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.change(r.Directory.Endpoint); err != nil {
			return err
		}
		p.Changes++
	}
	err := r.wait(ctx, r.tracker.all())
	samples, missing := r.tracker.take()
	for _, s := range seconds(samples, start) {
		p.Staleness = append(p.Staleness, measure.Of(s))
	}
	p.Latency, p.Missing = measure.Of(latencies(samples)), missing
	return err
}

// idle changes nothing for the Duration.
func (r *run) idle(ctx context.Context) error {
	timer := time.NewTimer(r.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sample looks at everything each second, until ctx ends, and says so.
func (r *run) sample(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-ticks.C:
			r.look(at)
		}
	}
}

func (r *run) look(at time.Time) {
	s := Sample{Seconds: at.Sub(r.began).Seconds(), Process: r.process()}
	for _, c := range r.fleet.Counts() {
		s.Messages += c.Messages
		s.Bytes += c.Bytes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Phase, s.Ready = r.phase, len(r.ready)
	r.report.Samples = append(r.report.Samples, s)
	if r.Progress != nil {
		fmt.Fprintf(r.Progress, "%6.1fs  %-8s  %d/%d have everything, %d ended  %d messages, %s  server: CPU %s, memory %s\n", s.Seconds, s.Phase, s.Ready, r.Clients,
			r.report.Ended, s.Messages, Size(s.Bytes), measure.Short(s.CPU), Size(s.Resident))
	}
}
