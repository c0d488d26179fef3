package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// patience is how long a start may take.
const patience = 5 * time.Minute

// pilotd is one process of pilotd and when it did what.
type pilotd struct {
	t         testing.TB
	cmd       *exec.Cmd
	began     time.Time
	xds, http string
	log       string
}

// start starts pilotd on an API server; it does not wait for anything.
func start(t testing.TB, kubeconfig string) *pilotd {
	t.Helper()
	p := &pilotd{t: t, xds: freeAddress(t), http: freeAddress(t), log: filepath.Join(t.TempDir(), "pilotd.log")}
	p.cmd = exec.Command(os.Getenv("PILOTD"), "discovery", "--registries=Kubernetes", "--kubeconfig="+kubeconfig,
		"--grpcAddr="+p.xds, "--httpAddr="+p.http,
		"--monitoringAddr=", "--secureGRPCAddr=", "--httpsAddr=", "--shutdownDuration=1s")
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("PILOTD=%q: %v: run by `make e2e`", os.Getenv("PILOTD"), err)
	}
	t.Cleanup(func() { p.stop() })
	return p
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// stop ends the process and reports what it used: CPU, and the most memory that it ever had.
func (p *pilotd) stop() (cpu time.Duration, peak int64) {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		if p.t.Failed() {
			log, _ := os.ReadFile(p.log)
			p.t.Logf("pilotd said:\n%s", log[max(0, len(log)-8000):])
		}
	}
	s := p.cmd.ProcessState
	return s.UserTime() + s.SystemTime(), s.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// ready tells when /ready says so.
func (p *pilotd) ready() <-chan time.Duration {
	ready := make(chan time.Duration, 1)
	go func() {
		defer close(ready)
		err := parts.Poll(patience, 10*time.Millisecond, func() error {
			resp, err := http.Get("http://" + p.http + "/ready")
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return errors.New("/ready: " + resp.Status)
			}
			return nil
		})
		if err == nil {
			ready <- time.Since(p.began)
		}
	}()
	return ready
}

// usage returns what the process has used up to now.
func (p *pilotd) usage() measure.Process {
	p.t.Helper()
	u, err := measure.Read(p.cmd.Process.Pid)
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// answers are what a client got, and when.
type answers struct {
	// clusters is when the first clusters came, complete when it had all that it asked for.
	clusters, complete time.Duration
	resources          [xdstype.NumStandard]int64
}

// client connects a simulated Envoy as soon as pilotd listens, and waits until it has everything.
func (p *pilotd) client(m *mesh.Mesh) answers {
	p.t.Helper()
	type receipt struct {
		at time.Time
		sidecar.Receipt
	}
	receipts, ended := make(chan receipt, 1000), make(chan error, 1)
	fleet, err := sidecar.Start(p.t.Context(), sidecar.Options{
		Clients: 1, Dial: p.dial,
		Spec: func(i int) (sidecar.Spec, error) {
			node, err := proto.Marshal(m.Node(i))
			return sidecar.Spec{Kind: sidecar.Sidecar, Delta: true, Node: node}, err
		},
		Observe: func(_ int, at time.Time, r *sidecar.Receipt) { receipts <- receipt{at, *r} },
		Ended:   func(_ int, err error) { ended <- err },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer fleet.Close()
	var out answers
	for limit := time.After(patience); out.complete == 0; {
		select {
		case r := <-receipts:
			if out.clusters == 0 && r.Known && r.Type == xdstype.Cluster {
				out.clusters = r.at.Sub(p.began)
			}
			if r.Ready {
				out.complete = r.at.Sub(p.began)
			}
		case err := <-ended:
			p.t.Fatalf("the client's stream ended: %v", err)
		case <-limit:
			p.t.Fatal("the client has not got everything")
		}
	}
	for i, c := range fleet.Counts() {
		if i < len(out.resources) {
			out.resources[i] = c.Resources
		}
	}
	return out
}

// dial connects to a server that comes up.
func (p *pilotd) dial(ctx context.Context, _, _ int) (net.Conn, wire.Header, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.xds)
		if err == nil {
			return conn, wire.Header{Authority: "pilotd"}, nil
		}
		select {
		case <-ctx.Done():
			return nil, wire.Header{}, fmt.Errorf("pilotd does not listen: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
