package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/xdstype"
)

// run is the state of a run.
type run struct {
	Options
	fleet    *sidecar.Fleet
	tracker  tracker
	coming   arrivals
	refusals refusals
	marks    int // the number of the last change

	mu sync.Mutex
	// Guarded by mu.
	report Report
	phase  string
	peak   int64
	lost   int            // streams that ended unexpectedly in this phase
	source measure.Source // measures the server; nil if it is not measured
	said   bool           // the end of a stream was reported
}

// Run runs the scenarios, in order.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &run{Options: o, report: newReport(&o), source: o.Server}
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var sampling sync.WaitGroup
	defer sampling.Wait()
	defer cancel()
	err := r.connect(ctx, func() { sampling.Go(func() { r.sample(ctx) }) })
	if r.fleet != nil {
		defer r.fleet.Close()
	}
	for _, name := range o.Scenarios {
		if err != nil {
			break
		}
		s := scenarios()[name]
		err = r.measure(ctx, name, func(p *Phase) error { return s.run(r, ctx, p) })
	}
	if o.Edits != nil {
		err = errors.Join(err, o.Edits.Restore())
	}
	if r.fleet != nil {
		r.report.Resources = r.fleet.Resources()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.report
	return &report, err
}

// check returns an error if a scenario cannot run, and undoes the changes of earlier runs.
func (r *run) check(ctx context.Context) error {
	for _, name := range r.Scenarios {
		s, ok := scenarios()[name]
		if !ok {
			return fmt.Errorf("no scenario %q: there are %s", name, list(Names()))
		}
		if s.needs != nil {
			if err := s.needs(r); err != nil {
				return fmt.Errorf("scenario %s %w", name, err)
			}
		}
	}
	if r.Edits != nil {
		if err := r.Edits.Restore(); err != nil {
			return err
		}
	}
	if r.Server != nil {
		_, err := r.Server(ctx)
		return err
	}
	return nil
}

// connect starts all clients and waits until each has everything that it asks for. It calls started once the fleet
// exists.
func (r *run) connect(ctx context.Context, started func()) error {
	return r.measure(ctx, "connect", func(p *Phase) error {
		o := r.Clients.Fleet(r.Mesh, r.Targets)
		o.Dialing, o.Observe, o.Ended = r.Dialing, r.observe, r.ended
		r.coming.expect(o.Clients, nil)
		fleet, err := sidecar.Start(ctx, o)
		if err != nil {
			return err
		}
		r.fleet = fleet
		started()
		return r.arrive(ctx, p)
	})
}

// arrive waits until all expected clients have everything.
func (r *run) arrive(ctx context.Context, p *Phase) error {
	err := r.wait(ctx, r.coming.all())
	r.coming.end(p)
	if err != nil {
		i := r.coming.first()
		return fmt.Errorf("%d of the clients do not have everything; the first, %s %d, lacks %s: %w", p.Missing,
			r.kind(i), i, r.fleet.Lacks(i), err)
	}
	return nil
}

// errPatience reports that something took longer than Patience.
var errPatience = errors.New("it takes too long")

// wait waits for done, at most for Patience.
func (r *run) wait(ctx context.Context, done <-chan struct{}) error {
	timer := time.NewTimer(r.Patience)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errPatience
	case <-ctx.Done():
		return ctx.Err()
	}
}

// observe records what a client received. Clients call it from many goroutines.
func (r *run) observe(i int, at time.Time, receipt *sidecar.Receipt) {
	if receipt.Ready {
		r.coming.ready(i, at)
	}
	if receipt.Refused {
		r.refusals.came()
	}
	r.tracker.received(i, at, receipt)
}

// ended records the end of a stream that should not have ended. In phases that end streams it is no failure.
func (r *run) ended(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost++
	if troubled(r.phase) {
		return
	}
	if r.report.Ended++; r.report.Ended == 1 {
		r.report.FirstError = fmt.Sprintf("client %d, %s: %v", i, r.phase, err)
	}
}

// settling is the time for a server to read the last ACKs before its CPU time is measured.
const settling = 300 * time.Millisecond

// measure runs a phase and reports what it cost.
func (r *run) measure(ctx context.Context, name string, act func(*Phase) error) error {
	before, own := r.server(ctx), r.own()
	r.mu.Lock()
	r.phase, r.peak, r.lost = name, before.Resident, 0
	r.mu.Unlock()
	p := Phase{Name: name, Types: map[string]sidecar.Count{}}
	var counts [xdstype.NumStandard + 1]sidecar.Count
	if r.fleet != nil {
		counts = r.fleet.Counts()
	}
	start := time.Now()
	err := act(&p)
	p.Took = time.Since(start)
	time.Sleep(settling)
	after, ownAfter := r.server(ctx), r.own()
	p.Own, p.OwnResident = ownAfter.CPU-own.CPU, ownAfter.Resident
	p.CPU, p.Resident, p.Heap = max(0, after.CPU-before.CPU), after.Resident, after.Heap
	if r.fleet != nil {
		for i, c := range r.fleet.Counts() {
			p.Types[typeNames()[i]] = c.Since(counts[i])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Peak = max(after.Peak, after.Resident, r.peak)
	p.Ended = r.lost
	p.Growth = growth(r.report.Samples, name)
	r.report.Phases = append(r.report.Phases, p)
	return err
}

// server measures the server; zero if it is not measured, or gone.
func (r *run) server(ctx context.Context) (p measure.Process) {
	r.mu.Lock()
	source := r.source
	r.mu.Unlock()
	if source != nil {
		p, _ = source(ctx)
	}
	return p
}

// own measures the load test itself.
func (r *run) own() measure.Process {
	p, _ := measure.Read(os.Getpid())
	return p
}
