package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/xdstype"
)

// edit makes the change of a lane that carries a mark.
type edit func(lane, mark int) (time.Time, error)

// nobody says that no client is absent.
func nobody(int) bool { return false }

// follow starts to track a series of changes in lanes services. It does not wait for absent clients, nor for clients
// that a change does not concern: a client that asks for no endpoints of a service does not see that service's changes,
// and gateways do not see routes of the mesh.
func (r *run) follow(s series, lanes []int, absent func(client int) bool) {
	s.base, s.lanes, s.start = r.marks, len(lanes), time.Now()
	type pair struct {
		of   sidecar.Destinations
		lane int
	}
	known := map[pair]bool{}
	all := make([]sidecar.Destinations, r.Total())
	for i := range all {
		all[i] = r.fleet.Destinations(i)
	}
	r.tracker.begin(s, r.Total(), func(client, lane int) bool {
		if absent(client) || s.of == xdstype.Route && r.kind(client) == sidecar.Gateway {
			return false
		}
		p := pair{all[client], lanes[lane]}
		concerns, ok := known[p]
		if !ok {
			concerns = p.of.Of(r.Mesh.Host(p.lane), s.of == xdstype.Route)
			known[p] = concerns
		}
		return concerns
	})
}

// change makes the next change, and returns the number of clients that it concerns.
func (r *run) change(e edit) (int, error) {
	r.marks++
	return r.tracker.write(e)
}

// changes makes changes one after the other, each when every client has the one before.
func (r *run) changes(ctx context.Context, p *Phase, e edit) error {
	defer r.tracker.end(p)
	for range r.Changes {
		if err := r.step(ctx, p, e); err != nil {
			return err
		}
	}
	return nil
}

// step makes a change and waits until every client has it.
func (r *run) step(ctx context.Context, p *Phase, e edit) error {
	concerned, err := r.change(e)
	if err != nil {
		return err
	}
	err = r.wait(ctx, r.tracker.reached(0))
	l, missing := r.tracker.next()
	p.Each = append(p.Each, l)
	p.Changes++
	if p.Concerned = concerned; err != nil {
		return fmt.Errorf("change %d: %d of %d clients lack it: %w", p.Changes, missing, concerned, err)
	}
	return nil
}

// typical replaces the latencies of a phase, whose changes were made one after the other, by their medians.
func typical(p *Phase, err error) error {
	p.Latency, p.Staleness = measure.Typical(p.Each), nil
	return err
}

func (r *run) endpoint(ctx context.Context, p *Phase) error {
	r.follow(series{of: xdstype.Endpoint}, []int{0}, nobody)
	return typical(p, r.changes(ctx, p, r.Edits.Endpoint))
}

func (r *run) editRoute(_, mark int) (time.Time, error) { return r.Edits.Route(mark) }

func (r *run) route(ctx context.Context, p *Phase) error {
	return r.routeWithout(ctx, p, nobody)
}

// routeWithout makes route changes without waiting for absent clients.
func (r *run) routeWithout(ctx context.Context, p *Phase, absent func(client int) bool) error {
	r.follow(series{of: xdstype.Route}, []int{0}, absent)
	return typical(p, r.changes(ctx, p, r.editRoute))
}

// routes adds a route and removes it again, repeatedly.
func (r *run) routes(ctx context.Context, p *Phase) error {
	edits := r.Edits.(RouteEdits)
	var each []measure.Latency
	var all measure.Histogram
	for range r.Changes {
		var added, removed Phase
		r.follow(series{of: xdstype.Route}, []int{r.Mesh.Unrouted()}, nobody)
		err := r.step(ctx, &added, func(_, mark int) (time.Time, error) { return edits.AddRoute(mark) })
		all.Merge(r.tracker.histogram())
		if err == nil {
			r.marks-- // removal is awaited by the mark of the addition
			r.follow(series{of: xdstype.Route, lost: true}, []int{r.Mesh.Unrouted()}, nobody)
			err = r.step(ctx, &removed, func(_, mark int) (time.Time, error) { return edits.RemoveRoute(mark) })
			all.Merge(r.tracker.histogram())
		}
		each = append(each, append(added.Each, removed.Each...)...)
		p.Changes, p.Concerned = p.Changes+added.Changes+removed.Changes, added.Concerned
		if err != nil {
			r.tracker.end(p)
			return err
		}
	}
	p.Each, p.Distribution = each, all.Percentiles()
	return typical(p, nil)
}

// lanes returns the services that churn edits.
func (r *run) lanes() (out []int) {
	for lane := range r.Edits.Lanes() {
		out = append(out, lane)
	}
	return out
}

// churn makes endpoint changes at a rate, in several services in turn, and waits until every client has the last.
func (r *run) churn(ctx context.Context, p *Phase) error {
	r.follow(series{of: xdstype.Endpoint}, r.lanes(), nobody)
	defer r.tracker.end(p)
	start := time.Now()
	err := r.paced(ctx, p, func() bool { return time.Since(start) < r.Duration })
	if err != nil {
		return err
	}
	return r.wait(ctx, r.tracker.reached(0))
}

// paced makes endpoint changes at the Rate while goOn returns true. A late change does not delay the ones after it.
func (r *run) paced(ctx context.Context, p *Phase, goOn func() bool) error {
	interval := time.Duration(float64(time.Second) / r.Rate)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for due := time.Now().Add(interval); goOn(); due = due.Add(interval) {
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		concerned, err := r.change(r.Edits.Endpoint)
		if err != nil {
			return err
		}
		p.Changes++
		p.Concerned = max(p.Concerned, concerned)
	}
	return ctx.Err()
}

// soak makes Changes endpoint changes: at the Rate, or if that is 0 as fast as every client gets them, with a few
// changes of each lane in progress.
func (r *run) soak(ctx context.Context, p *Phase) error {
	r.follow(series{of: xdstype.Endpoint}, r.lanes(), nobody)
	defer r.tracker.end(p)
	if r.Rate > 0 {
		if err := r.paced(ctx, p, func() bool { return p.Changes < r.Changes }); err != nil {
			return err
		}
		return r.wait(ctx, r.tracker.reached(0))
	}
	for p.Changes < r.Changes {
		concerned, err := r.change(r.Edits.Endpoint)
		if err != nil {
			return err
		}
		p.Changes++
		p.Concerned = max(p.Concerned, concerned)
		if err := r.wait(ctx, r.tracker.reached(concerned*r.Edits.Lanes())); err != nil {
			return err
		}
	}
	return r.wait(ctx, r.tracker.reached(0))
}

func (r *run) idle(ctx context.Context, _ *Phase) error { return r.pass(ctx) }
