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
			r.tracker.begin(sidecar.Endpoint, r.Clients, 1, r.marks, nil)
			return r.changes(ctx, p, func(_, n int) (time.Time, error) { return r.Edits.Endpoint(0, n) })
		case "route":
			r.tracker.begin(sidecar.Route, r.Clients, 1, r.marks, nil)
			return r.changes(ctx, p, r.route)
		case "churn":
			return r.churn(ctx, p)
		case "stall":
			return r.stall(ctx, p)
		case "refuse":
			return r.refuse(ctx, p)
		case "reconnect":
			return r.reconnect(ctx, p)
		}
		return r.idle(ctx)
	})
}

// changes makes one change after the other, each when everybody has the one before.
func (r *run) changes(ctx context.Context, p *Phase, edit func(lane, n int) (time.Time, error)) error {
	var all []time.Duration
	for range r.Changes {
		if err := r.change(edit); err != nil {
			return err
		}
		err := r.wait(ctx, r.tracker.all())
		samples, missing := r.tracker.take()
		after := latencies(samples)
		all = append(all, after...)
		p.Each = append(p.Each, measure.Of(after))
		p.Changes++
		if p.Missing = missing; err != nil {
			return fmt.Errorf("change %d: %d sidecars lack it: %w", p.Changes, missing, err)
		}
	}
	p.rank(all)
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

// rank takes the samples of the phase; their order is not kept.
func (p *Phase) rank(samples []time.Duration) {
	p.Latency, p.Distribution = measure.Of(samples), measure.Percentiles(samples)
}

// churn makes endpoint changes at a rate, of several services in turn, and waits until everybody has the last.
func (r *run) churn(ctx context.Context, p *Phase) error {
	if r.Rate <= 0 {
		return errors.New("churn needs a rate")
	}
	r.tracker.begin(sidecar.Endpoint, r.Clients, r.Edits.Lanes(), r.marks, nil)
	start := time.Now()
	ticks := time.NewTicker(time.Duration(float64(time.Second) / r.Rate))
	defer ticks.Stop()
	for time.Since(start) < r.Duration {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.change(r.Edits.Endpoint); err != nil {
			return err
		}
		p.Changes++
	}
	err := r.wait(ctx, r.tracker.all())
	samples, missing := r.tracker.take()
	for _, s := range seconds(samples, start) {
		p.Staleness = append(p.Staleness, measure.Of(s))
	}
	p.rank(latencies(samples))
	p.Missing = missing
	return err
}

// route edits the VirtualService.
func (r *run) route(_, n int) (time.Time, error) { return r.Edits.Route(n) }

// odd reports whether a client is one of the share that misbehaves; they are spread evenly.
func (r *run) odd(i int) bool { return int(float64(i+1)*r.Share) > int(float64(i)*r.Share) }

// stall makes route changes while a share of the clients does not read, and measures the others. Then the share goes on.
func (r *run) stall(ctx context.Context, p *Phase) error {
	set := func(stalled bool) {
		for i := range r.Clients {
			if r.odd(i) {
				r.fleet.Stall(i, stalled)
			}
		}
	}
	set(true)
	defer set(false)
	r.tracker.begin(sidecar.Route, r.Clients, 1, r.marks, r.odd)
	return r.changes(ctx, p, r.route)
}

// refuse makes route changes that a share of the clients refuses, and measures the others.
func (r *run) refuse(ctx context.Context, p *Phase) error {
	r.tracker.begin(sidecar.Route, r.Clients, 1, r.marks, r.odd)
	return r.changes(ctx, p, func(_, n int) (time.Time, error) {
		for i := range r.Clients {
			if r.odd(i) {
				r.fleet.Refuse(i, sidecar.Route)
			}
		}
		return r.Edits.Route(n)
	})
}

// reconnect lets all clients come back with what they have, and waits until each is answered and nothing more comes.
func (r *run) reconnect(ctx context.Context, p *Phase) error {
	done := make(chan struct{})
	r.mu.Lock()
	r.began, r.ready, r.allReady = time.Now(), nil, done
	r.mu.Unlock()
	r.fleet.Reconnect()
	err := r.wait(ctx, done)
	r.mu.Lock()
	p.Missing = r.Clients - len(r.ready)
	p.rank(r.ready)
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%d sidecars are not answered: %w", p.Missing, err)
	}
	return r.quiet(ctx)
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
	s := Sample{Seconds: at.Sub(r.report.Began).Seconds(), Process: r.process()}
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
