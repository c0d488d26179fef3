package parts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a running program of a test.
type Process struct {
	// Immutable after startProcess.
	name  string
	log   string
	cmd   *exec.Cmd
	ended chan struct{}

	// Written before ended is closed, read after.
	err error
}

// launch says how to start a program.
type launch struct {
	name string
	cmd  *exec.Cmd
	// start starts cmd; nil means cmd.Start.
	start func(*exec.Cmd) error
	// pipe, if set, receives the program's standard output.
	pipe bool
}

// program returns the path in an environment variable that `make e2e` sets.
func program(t testing.TB, env string) string {
	t.Helper()
	path := os.Getenv(env)
	if path == "" {
		t.Fatalf("%s does not name a program: run the tests by `make e2e`", env)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v: run the tests by `make e2e`", env, err)
	}
	return path
}

// startProcess starts l, and stops it at the end of the test. If the test failed, it prints the log.
func startProcess(t testing.TB, l launch) *Process {
	t.Helper()
	p := &Process{
		name: l.name, cmd: l.cmd, ended: make(chan struct{}),
		log: filepath.Join(t.TempDir(), l.name+".log"),
	}
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// A file, not a pipe: it needs no reader, and the log survives a crash.
	if !l.pipe {
		l.cmd.Stdout = out
	}
	l.cmd.Stderr = out
	if l.cmd.SysProcAttr == nil {
		l.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	l.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	l.cmd.WaitDelay = time.Second
	start := l.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(l.cmd); err != nil {
		t.Fatalf("%s: %v", l.name, err)
	}
	go func() {
		p.err = l.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("--- last lines of %s:\n%s", p.name, p.LogTail(8000))
		}
	})
	return p
}

// Stop asks the program to end, and kills it if it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
}

// Kill kills the program.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Alive returns nil while the program runs.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %v", p.name, p.err)
	default:
		return nil
	}
}

// LogTail returns at most the last n bytes that the program logged.
func (p *Process) LogTail(n int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-n):])
}
