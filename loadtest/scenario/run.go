package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// Options say what to run.
type Options struct {
	// Target is host:port of the server.
	Target  string
	Clients int
	Delta   bool
	// Dialing is how many clients connect at the same moment; all when 0.
	Dialing int
	// Scenarios follow the connect storm: endpoint, route, churn, stall, refuse, reconnect, idle.
	Scenarios []string
	// Mesh has the nodes of the clients.
	Mesh *mesh.Mesh
	// Edits is what is edited; nil if no scenario edits.
	Edits Edits
	// PID is the server's process, if it is on this machine.
	PID int
	// Changes is how many changes endpoint and route make.
	Changes int
	// Share of the clients do not read (stall) or refuse (refuse).
	Share float64
	// Rate is how many endpoint changes churn makes in a second, for Duration, which is that of idle too.
	Rate     float64
	Duration time.Duration
	// Patience is how long a change may take to reach everyone.
	Patience time.Duration
	// Progress is where a line is written every second.
	Progress io.Writer
}

// run is a run under way.
type run struct {
	Options
	fleet   *sidecar.Fleet
	tracker tracker
	marks   int // the number of the last change

	mu sync.Mutex
	// Guarded by mu.
	report   Report
	phase    string
	began    time.Time
	ready    []time.Duration // of each client that has been ready, since began
	allReady chan struct{}
}

// Run runs the scenarios, in order.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &run{Options: o, allReady: make(chan struct{}), report: Report{Target: o.Target, Clients: o.Clients, Protocol: "State of the World", Began: time.Now()}}
	if o.Delta {
		r.report.Protocol = "Delta"
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	r.began, r.phase = time.Now(), "connect"
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
		err = r.run(ctx, name)
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

func (r *run) check() error {
	for _, name := range r.Scenarios {
		switch name {
		case "endpoint", "route", "churn", "stall", "refuse":
			if r.Edits == nil {
				return fmt.Errorf("scenario %s needs a directory to edit", name)
			}
		case "reconnect", "idle":
		default:
			return fmt.Errorf("no scenario %q: there are endpoint, route, churn, stall, refuse, reconnect and idle", name)
		}
	}
	if r.Edits != nil {
		if err := r.Edits.Restore(); err != nil {
			return err
		}
	}
	if r.PID != 0 {
		_, err := measure.Read(r.PID)
		return err
	}
	return nil
}

// connect starts all clients and waits until each has all that it asks for; started is called once there is a fleet.
func (r *run) connect(ctx context.Context, started func()) error {
	return r.measure("connect", func(p *Phase) error {
		dialer := net.Dialer{}
		fleet, err := sidecar.Start(ctx, sidecar.Options{Clients: r.Clients, Delta: r.Delta, Dialing: r.Dialing,
			Dial:    func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", r.Target) },
			Node:    func(i int) ([]byte, error) { return proto.Marshal(r.Mesh.Node(i % r.Mesh.Workloads())) },
			Observe: r.observe, Ended: r.ended, Marks: sidecar.Marks{Endpoint: mesh.EndpointMark, Route: mesh.RouteMark}})
		if err != nil {
			return err
		}
		r.fleet = fleet
		started()
		err = r.wait(ctx, r.allReady)
		r.mu.Lock()
		defer r.mu.Unlock()
		p.Missing = r.Clients - len(r.ready)
		p.rank(r.ready)
		if err != nil {
			return fmt.Errorf("connecting: %d of %d sidecars have everything: %w", len(r.ready), r.Clients, err)
		}
		return nil
	})
}

// errPatience says that something took too long.
var errPatience = errors.New("it takes too long")

// wait waits for done, as long as there is patience.
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

// observe is called by the clients.
func (r *run) observe(i int, at time.Time, receipt *sidecar.Receipt) {
	if receipt.Ready {
		r.mu.Lock()
		r.ready = append(r.ready, at.Sub(r.began))
		if len(r.ready) == r.Clients {
			close(r.allReady)
		}
		r.mu.Unlock()
	}
	r.tracker.received(i, at, receipt)
}

func (r *run) ended(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Ended++; r.report.Ended == 1 {
		r.report.FirstError = fmt.Sprintf("client %d: %v", i, err)
	}
}

// settling is the time that a server is given to read the last ACKs before its CPU time is read.
const settling = 300 * time.Millisecond

// measure runs a phase and reports what it cost.
func (r *run) measure(name string, act func(*Phase) error) error {
	r.mu.Lock()
	r.phase = name
	r.mu.Unlock()
	p := Phase{Name: name, Types: map[string]sidecar.Count{}}
	var counts [sidecar.Types + 1]sidecar.Count
	if r.fleet != nil {
		counts = r.fleet.Counts()
	}
	before, own := r.process(), r.own()
	start := time.Now()
	err := act(&p)
	p.Took = time.Since(start)
	time.Sleep(settling)
	after := r.process()
	p.Own = r.own() - own
	p.CPU, p.Resident, p.Peak = after.CPU-before.CPU, after.Resident, after.Peak
	if r.fleet != nil {
		for i, c := range r.fleet.Counts() {
			b := counts[i]
			p.Types[typeNames()[i]] = sidecar.Count{Messages: c.Messages - b.Messages, Bytes: c.Bytes - b.Bytes, Resources: c.Resources - b.Resources,
				Useless: c.Useless - b.Useless, UselessBytes: c.UselessBytes - b.UselessBytes, Refused: c.Refused - b.Refused}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Phases = append(r.report.Phases, p)
	return err
}

// process is the server's; all zero if it is not known or gone.
func (r *run) process() (p measure.Process) {
	if r.PID != 0 {
		p, _ = measure.Read(r.PID)
	}
	return p
}

// own is the CPU time of the load test itself.
func (r *run) own() time.Duration {
	p, _ := measure.Read(os.Getpid())
	return p.CPU
}
