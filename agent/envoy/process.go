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

// killTime is how long its output may stay open after its end.
const killTime = time.Second

// Options say how Envoy is started.
type Options struct {
	// Binary is its path, Config that of its bootstrap.
	Binary, Config string
	// Override is configuration that is laid on the bootstrap, as YAML; none when empty.
	Override string
	// LogLevel and ComponentLogLevel are as Envoy's flags of those names; Envoy's own when empty.
	LogLevel, ComponentLogLevel string
	// Concurrency is how many threads work; one for each processor when 0.
	Concurrency int
	// DrainTime is how long connections that are drained may take.
	DrainTime time.Duration
	// FlushInterval and FlushSize say when access logs are written: after a time, or from a size in KiB on. Zero is
	// Envoy's own.
	FlushInterval time.Duration
	FlushSize     uint32
	// IPv6 has names resolve to addresses of IPv6 where Envoy asks for its own.
	IPv6 bool
	// Stdout takes what it prints, access logs as a rule, and Stderr what it logs. A file is Envoy's own from then on.
	Stdout, Stderr io.Writer
	Log            *slog.Logger
}

// logFormat is how Envoy logs: time, level, place, text, thread.
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
	// Written before done is closed, read after.
	err error

	drained atomic.Bool
}

// Start starts Envoy. It dies with this process, and gets none of its signals.
func Start(o Options) (*Process, error) {
	cmd := exec.Command(o.Binary, o.args()...) // #nosec G204 -- the proxy that the image names
	log := &critical{to: o.Stderr}
	cmd.Stdout, cmd.Stderr = o.Stdout, log
	cmd.WaitDelay = killTime // somebody else may have its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{log: o.Log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that has started a process for that of its parent.
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

// Done is closed when Envoy has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how Envoy has ended, with what it has said of that; nil for exit code 0. It is for after Done.
func (p *Process) Err() error { return p.err }

// Ending says how Envoy ends when the pod does.
type Ending struct {
	// Time is how long it drains.
	Time time.Duration
	// OnZero has it drain until no connection is open instead, and for Least at least; who ends the pod sets the limit.
	OnZero bool
	Least  time.Duration
	// InboundOnly drains listeners of inbound traffic alone: the application may still have something to send.
	InboundOnly bool
	// Every is how often connections are counted.
	Every time.Duration
}

// Drain has Envoy drain, once. An Envoy that was drained ends at once when it is told to.
func (p *Process) Drain(ctx context.Context, a Admin, e Ending) error {
	if p.drained.Swap(true) {
		return nil
	}
	return a.Drain(ctx, e.InboundOnly)
}

// End drains Envoy, unless that has happened, waits as Ending says, kills it and waits until it is gone. It ends early
// when Envoy does.
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

// wait reports whether the time has passed, rather than ctx or Envoy having ended.
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

// Kill ends Envoy at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.kill()
	<-p.done
}
