package envoy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// killTime is how long Wait waits for Envoy's output to be closed after Envoy has exited.
const killTime = time.Second

// Options are the settings of an Envoy process.
type Options struct {
	// Binary is the path of the program, Config the path of the bootstrap.
	Binary, Config string
	// Override is YAML that Envoy merges into the bootstrap. Empty means none.
	Override string
	// LogLevel and ComponentLogLevel are the values of Envoy's flags with these names. Empty means Envoy's default.
	LogLevel, ComponentLogLevel string
	// Concurrency is the number of Envoy's worker threads. 0 means one for each processor.
	Concurrency int
	// DrainTime is how long Envoy drains connections.
	DrainTime time.Duration
	// FlushInterval and FlushSize say when access logs are written: after this time, or when this many KiB have
	// collected. Zero means Envoy's default.
	FlushInterval time.Duration
	FlushSize     uint32
	// IPv6 makes Envoy choose an IPv6 address as its local address.
	IPv6 bool
	// Stdout receives Envoy's standard output, usually access logs, and Stderr its log. A *os.File is passed to Envoy
	// itself.
	Stdout, Stderr io.Writer
	Log            *slog.Logger
}

// logFormat is the format of Envoy's log: time, level, source, text, thread.
const logFormat = "%Y-%m-%dT%T.%fZ\t%l\tenvoy %n %g:%#\t%v\tthread=%t"

func (o Options) args() []string {
	version := "v4"
	if o.IPv6 {
		version = "v6"
	}
	out := []string{"-c", o.Config, "--drain-time-s", strconv.Itoa(int(o.DrainTime / time.Second)),
		"--drain-strategy", "immediate", "--local-address-ip-version", version, "--disable-hot-restart",
		"--allow-unknown-static-fields", "--log-format", logFormat}
	for _, flag := range []struct{ name, value string }{
		{"-l", o.LogLevel}, {"--component-log-level", o.ComponentLogLevel}, {"--config-yaml", o.Override},
		{"--concurrency", numberUnless0(int64(o.Concurrency))},
		{"--file-flush-interval-msec", numberUnless0(o.FlushInterval.Milliseconds())},
		{"--file-flush-min-size-kb", numberUnless0(int64(o.FlushSize))},
	} {
		if flag.value != "" {
			out = append(out, flag.name, flag.value)
		}
	}
	return out
}

func numberUnless0(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Process is a running Envoy.
type Process struct {
	// Immutable after Start.
	log  *slog.Logger
	kill func() error
	done chan struct{}
	// Written before done is closed, read only after that.
	err error

	drained atomic.Bool
}

// Start starts Envoy. Envoy is killed when this process dies, and does not receive the signals that this process
// receives.
func Start(o Options) (*Process, error) {
	cmd := exec.Command(o.Binary, o.args()...) // #nosec G204 -- the proxy that the image names
	log := &critical{to: o.Stderr}
	cmd.Stdout, cmd.Stderr = o.Stdout, log
	cmd.WaitDelay = killTime // a child of Envoy may keep its output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{log: o.Log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills Envoy when the thread that started it ends, even if the process lives on: so this goroutine
		// keeps its thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			if p.err = cmd.Wait(); p.err != nil && log.last != "" {
				p.err = fmt.Errorf("%w: %s", p.err, log.last)
			}
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("envoy: %w", err)
	}
	p.kill = cmd.Process.Kill
	return p, nil
}

// Done returns a channel that is closed when Envoy has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how Envoy exited, with the last critical line of its log; nil for exit code 0. Call it after Done.
func (p *Process) Err() error { return p.err }

// Ending says how Envoy is ended when the pod ends.
type Ending struct {
	// Time is how long Envoy drains.
	Time time.Duration
	// OnZero makes Envoy drain until no connection is open, and at least for Least, instead of for Time. The kubelet's
	// grace period is then the only upper limit.
	OnZero bool
	Least  time.Duration
	// InboundOnly drains inbound listeners alone, because the application may still have to send.
	InboundOnly bool
	// Every is how often connections are counted.
	Every time.Duration
}

// Drain makes Envoy drain, and returns at once. Only the first call has an effect. After it, End does not drain again.
func (p *Process) Drain(ctx context.Context, a Admin, e Ending) error {
	if p.drained.Swap(true) {
		return nil
	}
	return a.Drain(ctx, e.InboundOnly)
}

// End drains Envoy, waits as Ending says, kills it and waits until it has exited. It returns early when Envoy exits by
// itself. If Drain was called before, it kills Envoy at once, unless OnZero is set.
func (p *Process) End(ctx context.Context, a Admin, e Ending) {
	if drained := p.drained.Load(); drained && !e.OnZero {
		p.Kill()
		return
	} else if !drained {
		if err := p.Drain(ctx, a, e); err != nil {
			p.log.Error("Envoy does not drain", "error", err)
		}
	}
	if !e.OnZero {
		p.log.Info("draining", "time", e.Time)
		p.wait(ctx, e.Time)
		p.Kill()
		return
	}
	p.log.Info("draining until no connection is open", "least", e.Least)
	for pause := e.Least; p.wait(ctx, pause); pause = e.Every {
		n, err := a.Connections(ctx)
		if err == nil && n == 0 {
			break
		}
		p.log.Debug("connections are open", "count", n, "error", err)
	}
	p.Kill()
}

// wait waits for d, and reports whether that passed without ctx ending or Envoy exiting.
func (p *Process) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-p.done:
	}
	return false
}

// Kill kills Envoy and waits until it has exited.
func (p *Process) Kill() {
	_ = p.kill()
	<-p.done
}
