package parts

import (
	"fmt"
	"testing"
	"time"
)

const (
	patience = 40 * time.Second
	pause    = 50 * time.Millisecond
)

// Eventually calls cond until it returns nil, and fails the test with the last error if that takes too long. On an idle
// machine everything that tests wait for takes at most a second, except for Envoy's back-off between failed streams,
// which grows to half a minute.
func Eventually(t testing.TB, what string, cond func() error) {
	t.Helper()
	if err := Poll(patience, pause, cond); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Poll calls cond until it returns nil, with pauses in between. After limit it returns the last error.
func Poll(limit, pause time.Duration, cond func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := cond()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", limit, err)
		}
		time.Sleep(pause)
	}
}

// Throughout calls cond repeatedly while during runs, for conditions that must hold all the time. The first error fails
// the test.
func Throughout(t testing.TB, what string, cond func() error, during func()) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- untilStopped(cond, stop) }()
	defer func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}()
	during()
}

func untilStopped(cond func() error, stop <-chan struct{}) error {
	every := time.NewTicker(pause)
	defer every.Stop()
	for {
		if err := cond(); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-every.C:
		}
	}
}
