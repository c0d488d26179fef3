package scenario

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
)

// Kill says how to kill the first server and start it again.
type Kill struct {
	// PID is its process, which is killed if Command is empty.
	PID int
	// Command is the shell command that kills it, Restart the one that starts it again; without Restart it stays away.
	// If the last line that Restart prints is a number, that is the id of the new process.
	Command, Restart string
	// Down is the pause between the two.
	Down time.Duration
}

// kill kills the first server and starts it again, if Restart is set. The latency is the time from the kill until its
// clients are back.
func (r *run) kill(ctx context.Context, p *Phase) error {
	r.coming.expect(r.Total(), func(client int) bool { return r.fleet.Target(client) == 0 })
	if err := r.Kill.end(ctx); err != nil {
		return fmt.Errorf("killing the server: %w", err)
	}
	if r.Kill.Restart != "" {
		timer := time.NewTimer(r.Kill.Down)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		pid, err := r.Kill.start(ctx)
		if err != nil {
			return fmt.Errorf("starting the server again: %w", err)
		}
		if pid != 0 && r.Kill.PID != 0 {
			r.setServer(measure.Local(pid))
			r.Kill.PID = pid
		}
	}
	if err := r.arrive(ctx, p); err != nil {
		return err
	}
	return r.quiet(ctx)
}

// setServer changes the process whose CPU time and memory are measured.
func (r *run) setServer(s measure.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = s
}

func (k *Kill) end(ctx context.Context) error {
	if k.Command == "" {
		return syscall.Kill(k.PID, syscall.SIGKILL)
	}
	_, err := shell(ctx, k.Command)
	return err
}

// start runs Restart, and returns the id of the new process if it is known.
func (k *Kill) start(ctx context.Context) (int, error) {
	said, err := shell(ctx, k.Restart)
	if err != nil {
		return 0, err
	}
	lines := strings.Fields(said)
	if len(lines) == 0 {
		return 0, nil
	}
	pid, err := strconv.Atoi(lines[len(lines)-1])
	if err != nil {
		return 0, nil // another kind of output
	}
	return pid, nil
}

// shell runs a command and returns its output. It does not wait for processes that the command leaves behind, even if
// they keep the output open.
func shell(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.WaitDelay = time.Second
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	if err := cmd.Run(); err != nil && said.Len() == 0 {
		return "", fmt.Errorf("%q: %w %s", command, err, complained.Bytes())
	}
	return said.String(), nil
}
