package parts

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Sample is the program that `make run` runs; SAMPLE is its path.
type Sample struct{ *Process }

// StartSample starts the sample mesh of a directory and waits until it prints what to try.
func StartSample(t testing.TB, mesh, meshConfig string) *Sample {
	t.Helper()
	cmd := exec.Command(program(t, "SAMPLE"), "-pilotd", program(t, "PILOTD"), "-envoy", program(t, "ENVOY"),
		"-mesh", mesh, "-mesh-config", meshConfig, "-logs", t.TempDir())
	s := &Sample{startProcess(t, launch{name: "sample", cmd: cmd})}
	Eventually(t, "the sample says what to try", func() error {
		if err := s.Alive(); err != nil {
			t.Fatalf("%v\n%s", err, s.LogTail(4000))
		}
		if !strings.Contains(s.LogTail(4000), "Ctrl-C") {
			return errors.New("not yet")
		}
		return nil
	})
	return s
}

// Interrupt sends the signal of Ctrl-C, and returns the program's error.
func (s *Sample) Interrupt() error {
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	<-s.ended
	return s.err
}
