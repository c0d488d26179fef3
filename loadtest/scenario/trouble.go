package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/xdstype"
)

// odd reports whether a client belongs to the share that misbehaves. These clients are spread evenly; those on one
// connection misbehave together.
func (r *run) odd(client int) bool {
	i := float64(r.fleet.Connection(client))
	return int((i+1)*r.Share) > int(i*r.Share)
}

// each calls with with one client of each connection that misbehaves, or of every connection.
func (r *run) each(all bool, with func(client int)) {
	for i := 0; i < r.Total(); i += max(1, r.PerConnection) {
		if all || r.odd(i) {
			with(i)
		}
	}
}

// stall makes route changes while a share of the clients does not read, and measures the others. Then the share reads
// again.
func (r *run) stall(ctx context.Context, p *Phase) error {
	r.each(false, func(i int) { r.fleet.Stall(i, true) })
	defer r.each(false, func(i int) { r.fleet.Stall(i, false) })
	return r.routeWithout(ctx, p, r.odd)
}

// slow makes route changes while a share of the clients reads slowly, and measures the others.
func (r *run) slow(ctx context.Context, p *Phase) error {
	r.each(false, func(i int) { r.fleet.Slow(i, r.ReadRate) })
	defer r.each(false, func(i int) { r.fleet.Slow(i, 0) })
	return r.routeWithout(ctx, p, r.odd)
}

// refuse makes route changes that a share of the clients refuses, and measures the others.
func (r *run) refuse(ctx context.Context, p *Phase) error {
	r.follow(series{of: xdstype.Route}, []int{0}, r.odd)
	return typical(p, r.refused(ctx, p))
}

// refused makes the changes. It waits after each until every client that should has refused it.
func (r *run) refused(ctx context.Context, p *Phase) error {
	defer r.tracker.end(p)
	for range r.Changes {
		all := r.refusals.expect(r.Total(), r.odd)
		err := r.step(ctx, p, func(_, mark int) (time.Time, error) {
			for i := range r.Total() {
				if r.odd(i) {
					r.fleet.Refuse(i, xdstype.Route)
				}
			}
			return r.Edits.Route(mark)
		})
		if err != nil {
			return err
		}
		if err := r.wait(ctx, all); err != nil {
			return fmt.Errorf("change %d: not everybody who should has refused it: %w", p.Changes, err)
		}
	}
	return nil
}

// refusals counts refusals that are awaited.
type refusals struct {
	mu sync.Mutex
	// Guarded by mu.
	left int
	done chan struct{}
}

// expect starts to wait for one refusal of each client that chosen selects. The channel is closed when all have come.
func (r *refusals) expect(clients int, chosen func(int) bool) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.done = 0, make(chan struct{})
	for i := range clients {
		if chosen(i) {
			r.left++
		}
	}
	if r.left == 0 {
		close(r.done)
	}
	return r.done
}

// came counts a refusal.
func (r *refusals) came() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left--; r.left == 0 {
		close(r.done)
	}
}

// vanish makes route changes after a share of the clients has disappeared without closing anything, half of them with
// open connections, and measures the others. Then the share comes back.
func (r *run) vanish(ctx context.Context, p *Phase) error {
	how := sidecar.Silent
	r.each(false, func(i int) {
		r.fleet.Leave(i, how)
		how = sidecar.Silent + sidecar.Abrupt - how
	})
	err := r.routeWithout(ctx, p, r.odd)
	r.coming.expect(r.Total(), r.odd)
	r.each(false, func(i int) { r.fleet.Return(i) })
	if err != nil {
		return err
	}
	return r.arrive(ctx, &Phase{})
}

// reconnect makes all clients reconnect with what they have, and waits until each is answered and nothing more comes.
func (r *run) reconnect(ctx context.Context, p *Phase) error {
	r.coming.expect(r.Total(), nil)
	r.fleet.Reconnect()
	if err := r.arrive(ctx, p); err != nil {
		return err
	}
	return r.quiet(ctx)
}

// cut breaks all connections at once, as a network failure does. All clients come back with what they have, after their
// back-off.
func (r *run) cut(ctx context.Context, p *Phase) error {
	r.coming.expect(r.Total(), nil)
	r.each(true, func(i int) { r.fleet.Cut(i) })
	if err := r.arrive(ctx, p); err != nil {
		return err
	}
	return r.quiet(ctx)
}

// rolling replaces pods one after the other, as a rolling restart does: each pod's sidecar disappears, and the new
// pod's connects. A pod is replaced once every client has the endpoints with the pod before, and that pod's own sidecar
// has everything.
func (r *run) rolling(ctx context.Context, p *Phase) error {
	edits := r.Edits.(Restarts)
	for n := range r.Changes {
		i, err := r.workload(n)
		if err != nil {
			return err
		}
		client := i % max(1, r.Sidecars)
		replaced := func(c int) bool { return r.Sidecars > 0 && c == client }
		r.follow(series{of: xdstype.Endpoint}, []int{r.Mesh.ServiceOf(i)}, replaced)
		r.coming.expect(r.Total(), replaced)
		err = r.step(ctx, p, func(_, mark int) (time.Time, error) {
			at, err := edits.Replace(i, mark)
			if err != nil || r.Sidecars == 0 {
				return at, err
			}
			node, err := proto.Marshal(edits.Successor(i, mark))
			if err == nil {
				r.fleet.Replace(client, sidecar.Spec{Node: node, Delta: r.Delta})
			}
			return at, err
		})
		if err != nil {
			return err
		}
		if err := r.wait(ctx, r.coming.all()); err != nil {
			return fmt.Errorf("the sidecar of pod %d: %w", p.Changes, err)
		}
	}
	return typical(p, nil)
}

// workload returns the n-th workload to replace: those of services that can be edited, in order.
func (r *run) workload(n int) (int, error) {
	for i := range r.Mesh.Workloads() {
		if r.Mesh.ServiceOf(i) >= r.Edits.Lanes() {
			continue
		}
		if n == 0 {
			return i, nil
		}
		n--
	}
	return 0, fmt.Errorf("the mesh has no %d pods more that can be replaced", n+1)
}
