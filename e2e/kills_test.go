package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// A load is 1,000 requests a second, where the machine can: each of its callers asks, each time over a new connection,
// and then waits until its next turn.
const (
	loadCallers = 20
	loadTurn    = 20 * time.Millisecond
)

// load counts what comes of requests that are made until it is stopped.
type load struct {
	// Immutable after startLoad.
	begin time.Time
	stop  func()

	answered, failed atomic.Int64
	last             atomic.Pointer[error]

	mu      sync.Mutex
	reasons map[string]int // of failures since the last take, guarded by mu
}

// fail counts a request that has failed.
func (l *load) fail(err error) {
	l.failed.Add(1)
	l.last.Store(&err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons[regexp.MustCompile(`:\d{4,5}->`).ReplaceAllString(err.Error(), "->")]++
}

// take returns why requests have failed since it was called last.
func (l *load) take() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.reasons
	l.reasons = map[string]int{}
	return out
}

func startLoad(t *testing.T, from *testnet.Pod) *load {
	ctx, cancel := context.WithCancel(t.Context())
	client := from.Client()
	client.Timeout = 30 * time.Second
	l := &load{begin: time.Now(), reasons: map[string]int{}}
	var all sync.WaitGroup
	for range loadCallers {
		all.Go(func() {
			turn := time.NewTicker(loadTurn)
			defer turn.Stop()
			for ctx.Err() == nil {
				if err := asked(client); err != nil {
					l.fail(err)
				} else {
					l.answered.Add(1)
				}
				select {
				case <-turn.C:
				case <-ctx.Done():
				}
			}
		})
	}
	l.stop = func() { cancel(); all.Wait() }
	t.Cleanup(l.stop)
	return l
}

// goesOn waits until more requests have been answered than there are callers several times over: what was under way is
// decided.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	before := l.answered.Load()
	parts.Eventually(t, "requests are answered", func() error {
		if l.answered.Load() < before+10*loadCallers {
			return errors.New("few requests are answered")
		}
		return nil
	})
}

// fails returns how many requests fail until what during does has settled.
func (l *load) fails(t *testing.T, what string, during func()) int64 {
	t.Helper()
	l.take()
	failed, answered, begin := l.failed.Load(), l.answered.Load(), time.Now()
	during()
	d := time.Since(begin)
	l.goesOn(t)
	n := l.failed.Load() - failed
	t.Logf("%s: %d of %d requests failed, settled after %v: %v", what, n, l.answered.Load()-answered+n,
		d.Round(time.Millisecond), l.take())
	return n
}

// kills ends each part of the mesh without a word to it, one after the other, under load; the kubelet starts containers
// again. docs/operations.md has the figures and what bounds them.
func (w *agents) kills(t *testing.T, client *testnet.Pod, server, caller *parts.Agent) {
	l := startLoad(t, client)
	defer l.stop()
	l.goesOn(t)
	back := func(a *parts.Agent) {
		a.Restart()
		a.AwaitReady()
	}
	for _, c := range []struct {
		what string
		kill func()
	}{{"Envoy of a server", server.KillEnvoy}, {"agent of a server", func() { server.Kill() }}} {
		// Another pod serves, too: what is lost is what was under way at the one that has gone, and the few requests whose
		// retries all happen to choose it again.
		before := l.answered.Load()
		n := l.fails(t, c.what, func() { c.kill(); back(server) })
		if most := 2*loadCallers + (l.answered.Load()-before)/10; n > most {
			t.Errorf("%s: %d requests failed, want at most %d", c.what, n, most)
		}
	}
	for _, c := range []struct {
		what string
		kill func()
	}{{"Envoy of the client", caller.KillEnvoy}, {"agent of the client", func() { caller.Kill() }}} {
		// It has one proxy: while that is away nothing is answered, and from when it is ready on everything.
		if n := l.fails(t, c.what, func() { c.kill(); back(caller) }); n == 0 {
			t.Errorf("%s: no request failed: was it killed?", c.what)
		}
		if n := l.fails(t, c.what+", after it", func() {}); n > 0 {
			t.Errorf("%s: %d requests failed after it was ready", c.what, n)
		}
	}
	if n := l.fails(t, "pilotd", func() {
		w.pilotd.Kill()
		w.pilotd.Start()
		parts.Eventually(t, "the agents are connected again", func() error { return connected(w.pilotd, 3) })
	}); n > 0 {
		t.Errorf("%d requests failed while pilotd was away", n)
	}
	t.Logf("%d requests in %v, %d failed", l.answered.Load()+l.failed.Load(),
		time.Since(l.begin).Round(time.Millisecond), l.failed.Load())
}

// moves has pilotd restarted, replaced by another revision, and its agents move between replicas, under load: no
// request fails.
func (w *agents) moves(t *testing.T, client *testnet.Pod) {
	l := startLoad(t, client)
	defer l.stop()
	l.goesOn(t)
	var canary *parts.Pilotd
	for _, c := range []struct {
		what string
		move func()
		to   func() *parts.Pilotd
	}{
		{"pilotd is restarted", func() { w.pilotd.Stop(); w.pilotd.Start() }, func() *parts.Pilotd { return w.pilotd }},
		{"another revision takes its place", func() {
			canary = parts.StartPilotd(t, w.replica(1, "REVISION=canary"))
			w.service.To(secureAt(1))
			w.pilotd.Stop()
		}, func() *parts.Pilotd { return canary }},
		{"a replica goes, another one serves", func() {
			w.pilotd.Start()
			w.service.To(secureAt(0))
			canary.Kill()
		}, func() *parts.Pilotd { return w.pilotd }},
	} {
		if n := l.fails(t, c.what, func() {
			c.move()
			parts.Eventually(t, "the agents have moved", func() error { return connected(c.to(), 3) })
		}); n > 0 {
			t.Errorf("%s: %d requests failed", c.what, n)
		}
	}
}

// connected returns nil if pilotd serves so many proxies.
func connected(to *parts.Pilotd, n int) error {
	page, err := to.Debug("/debug/syncz")
	if got := strings.Count(page, `"proxy":`); err == nil && got < n {
		err = fmt.Errorf("%d proxies, want %d", got, n)
	}
	return err
}
