package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a program that runs beside this one.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program that logs into a file of its name. If it ends before it is
// stopped, fail is called with the reason.
func start(logs string, fail context.CancelCauseFunc, program string, args ...string) (*process, error) {
	name := filepath.Base(program)
	path := filepath.Join(logs, name+".log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		err := p.cmd.Wait()
		close(p.ended)
		fail(fmt.Errorf("%s ended (%v); its log is %s, which ends:\n%s", name, err, path, tail(path)))
	}()
	return p, nil
}

// stop ends the program, if need be by force.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// tail returns the end of a log.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}

// await asks until the answer is 200; ctx or half a minute ends it.
func await(ctx context.Context, url, host string) error {
	timeout := time.After(30 * time.Second)
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		err := ask(ctx, url, host)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout:
			return fmt.Errorf("no good answer in 30 s: %w", err)
		case <-every.C:
		}
	}
}

func ask(ctx context.Context, url, host string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
