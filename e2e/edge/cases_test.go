package edge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/edge"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestCases replays what was found by hand, by the generator, and in the field. Of each case: no Envoy refuses
// anything, the bad object is named with its field, and the other tenant is unharmed. An Envoy that starts while many
// of them are in force gets everything else.
func TestCases(t *testing.T) {
	cases, err := edge.ReadCases("testdata")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "")
	for chunk := range slices.Chunk(cases, slots) {
		w.replay(t, chunk)
	}
	w.heal(t)
	for slot, c := range cases {
		if c, err := c.In(slot % slots); err == nil && c.EnvoyRefuses {
			t.Run(c.Name, func(t *testing.T) { w.replayRefused(t, c) })
		}
	}
}

// replayRefused applies a case of which Envoy may refuse what is made: the other tenant's edit arrives, and the object
// is named.
func (w *world) replayRefused(t *testing.T, c edge.Case) {
	t.Helper()
	if c.Known != "" {
		t.Skipf("KNOWN, NOT FIXED: %s", c.Known)
	}
	w.store.replace(c.Objects)
	w.round++
	w.store.Apply(goodRoute(w.round))
	for _, p := range w.probes {
		parts.Eventually(t, p.name, func() error { return w.seen(p) })
	}
	parts.Eventually(t, "the object is named", func() error { return says(c, w.complaints()) })
	w.store.replace(nil)
	w.refused()
	w.heal(t)
}

// replay applies cases, each in a slot of its own, all at once. If that goes wrong it applies one after the other, to
// say which.
func (w *world) replay(t *testing.T, cases []edge.Case) {
	t.Helper()
	var objects []edge.Object
	for slot, c := range cases {
		c, err := c.In(slot)
		if err != nil {
			t.Fatal(err)
		}
		cases[slot] = c
		if c.Known == "" && !c.EnvoyRefuses {
			objects = append(objects, c.Objects...)
		}
	}
	problem := w.apply(objects)
	if problem == "" {
		w.startLate(t, lateClient(), parts.Sidecar, parts.Delta)
		w.startLate(t, lateGateway(), parts.Gateway, parts.SotW)
	} else {
		t.Errorf("%d cases at once: %.3000s", len(cases), problem)
		w.heal(t)
	}
	named := w.complaints()
	for _, c := range cases {
		if c.EnvoyRefuses {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if c.Known != "" {
				t.Skipf("KNOWN, NOT FIXED: %s", c.Known)
			}
			if problem != "" {
				if alone := w.applyAnew(c.Objects); alone != "" {
					t.Errorf("alone: %.2000s", alone)
					defer w.heal(t)
				}
				named = w.complaints()
			}
			if err := says(c, named); err != nil {
				t.Error(err)
			}
		})
	}
}

// says returns nil if pilotd says of a case's objects what it must.
func says(c edge.Case, named map[value.ObjectKey]complaint) error {
	if c.Admitted {
		for _, o := range c.Objects {
			if c := named[o.Key()]; c.refused {
				return fmt.Errorf("%s must be admitted, but is refused: %s", o.Key(), c.lines)
			}
		}
	}
	if c.Field == "" {
		return nil
	}
	reasons := named[c.Names].lines
	if c.Field == "-" && mentioned(c.Names, named) {
		return nil
	}
	if reasons == "" {
		return fmt.Errorf("%s is not on /debug/rejectionsz", c.Names)
	}
	for reason := range strings.Lines(reasons) {
		if strings.HasPrefix(reason, c.Field) {
			return nil
		}
	}
	return fmt.Errorf("%s is on /debug/rejectionsz, but not with its field %s: %s", c.Names, c.Field, reasons)
}

// mentioned reports whether an object is named, perhaps beside another one of which the same thing was made.
func mentioned(key value.ObjectKey, named map[value.ObjectKey]complaint) bool {
	for of, c := range named {
		if of == key || strings.Contains(c.lines, key.String()) {
			return true
		}
	}
	return false
}

// heal takes all of the hostile tenant's objects away and waits until nothing is refused any more.
func (w *world) heal(t *testing.T) {
	t.Helper()
	var problem string
	for range 4 {
		if problem = w.apply(nil); problem == "" {
			return
		}
	}
	t.Fatalf("the mesh does not heal when all bad objects are gone: %.2000s", problem)
}

// startLate starts an Envoy while the hostile tenant's objects are in force: it becomes ready, reaches the good tenant,
// and refuses nothing.
func (w *world) startLate(t *testing.T, p parts.Workload, kind parts.ProxyKind, protocol parts.Protocol) {
	t.Helper()
	t.Run("started late: "+p.Name, func(t *testing.T) {
		pod := w.network.Pod(t, p.IP)
		e := parts.StartEnvoy(t, pod, parts.EnvoySpec{Kind: kind, Protocol: protocol, Workload: p,
			XDS: w.pilotd.Address(), Secrets: w.secrets})
		err := parts.Poll(30*time.Second, 50*time.Millisecond, func() error { _, err := e.Admin("/ready"); return err })
		if err != nil {
			waits, _ := e.Admin("/init_dump")
			warming, _ := e.Warming()
			queue, _ := w.pilotd.Debug("/debug/shardz")
			t.Fatalf("%v; it waits for %.3000s, clusters %v; pilotd: %.3000s", err, waits, warming, queue)
		}
		url, host, client := "http://"+webVIP+":80/", webHost, pod.Client()
		if kind == parts.Gateway {
			url, host, client = "http://"+p.IP+":8080/", publicHost, w.outside
		}
		parts.Eventually(t, "the good tenant answers", func() error {
			round, err := askWeb(client, url, host)
			if err == nil && round != fmt.Sprint(w.round) {
				return fmt.Errorf("round %s, want %d", round, w.round)
			}
			return err
		})
		if err := e.NothingRefused(); err != nil {
			t.Errorf("%v\n%s", err, e.LogTail(3000))
		}
	})
}
