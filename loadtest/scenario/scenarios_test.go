package scenario_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/scenario"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/loadtest/wire"
)

// Each scenario makes its changes, and everybody whom they concern gets them.
func TestScenariosMakeChanges(t *testing.T) {
	const clients = 4
	for _, c := range []struct {
		name      string
		concerned int
		calls     []string
	}{
		{"endpoint", clients, []string{"endpoint 0 1", "endpoint 0 2"}},
		{"route", clients, []string{"route 1", "route 2"}},
		{"routes", clients, []string{"add 1", "remove 1", "add 2", "remove 2"}},
		{"soak", clients, []string{"endpoint 0 1", "endpoint 1 2"}},
		{"rolling", clients - 1, []string{"replace 0 1", "replace 1 2"}},
		{"stall", clients / 2, []string{"route 1", "route 2"}},
		{"slow", clients / 2, []string{"route 1", "route 2"}},
		{"refuse", clients / 2, []string{"route 1", "route 2"}},
		{"vanish", clients / 2, []string{"route 1", "route 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := build(t)
			target, _ := w.serve()
			r, err := scenario.Run(t.Context(), w.options(target, clients, c.name))
			must(t, err)
			p := r.Phases[1]
			if p.Name != c.name || p.Changes != len(c.calls) || p.Concerned != c.concerned || p.Missing != 0 ||
				p.Latency.Samples != c.concerned*len(c.calls) {
				t.Errorf("%+v", p)
			}
			if !slices.Equal(w.calls, c.calls) {
				t.Error(w.calls)
			}
			if refused := p.Total().Refused; c.name == "refuse" && refused != clients/2*2 || c.name != "refuse" &&
				refused != 0 {
				t.Error(refused, "refused")
			}
			if news := slices.ContainsFunc(w.nodes,
				func(n string) bool { return n == "new 1 2" }); news != (c.name == "rolling") {
				t.Error(w.nodes)
			}
			if r.Ended != 0 {
				t.Error(r.Ended, r.FirstError)
			}
		})
	}
}

func TestChurnMeasuresStaleness(t *testing.T) {
	w := build(t)
	target, _ := w.serve()
	r, err := scenario.Run(t.Context(), w.options(target, 3, "churn"))
	must(t, err)
	p := r.Phases[1]
	if p.Changes < 2 || p.Changes != len(w.calls) || p.Latency.Samples != 3*p.Changes || len(p.Staleness) == 0 ||
		len(p.Each) != 0 || w.calls[1] != "endpoint 1 2" {
		t.Errorf("%+v %v", p, w.calls)
	}
}

// Soaking as fast as everybody gets it goes on until all changes are made.
func TestSoakWithoutRate(t *testing.T) {
	w := build(t)
	target, _ := w.serve()
	o := w.options(target, 3, "soak")
	o.Rate, o.Changes = 0, 500
	r, err := scenario.Run(t.Context(), o)
	must(t, err)
	if p := r.Phases[1]; p.Changes != 500 || p.Missing != 0 || p.Latency.Samples < 500 {
		t.Errorf("%+v", p)
	}
}

// Clients whose server is killed move to the other; those of the other do not.
func TestKilledServersClientsMove(t *testing.T) {
	w := build(t)
	first, server := w.serve()
	second, _ := w.serve()
	o := w.options(first, 4, "kill", "cut", "route")
	o.Targets = append(o.Targets, second)
	pipe := filepath.Join(t.TempDir(), "kill")
	must(t, syscall.Mkfifo(pipe, 0o600))
	o.Kill.Command = "echo now > " + pipe
	go func() { // what the command does not do itself
		if _, err := os.ReadFile(pipe); err == nil {
			server.Stop()
		}
	}()
	r, err := scenario.Run(t.Context(), o)
	must(t, err)
	kill, cut := r.Phases[1], r.Phases[2]
	if kill.Latency.Samples != 2 || kill.Ended < 2 || cut.Latency.Samples != 4 || r.Phases[3].Concerned != 4 {
		t.Errorf("%+v\n%+v", kill, cut)
	}
}

// A change that somebody never gets ends the run, which says how many.
func TestMissingReceiptsAreSaid(t *testing.T) {
	w := build(t)
	target, _ := w.serve()
	o := w.options(target, 2, "route")
	o.Edits, o.Patience = lazy{w}, 50*time.Millisecond
	r, err := scenario.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "2 of 2 clients lack it") || r.Phases[1].Missing != 2 {
		t.Errorf("%v %+v", err, r)
	}
}

// lazy edits tell nobody.
type lazy struct{ *testServer }

func (lazy) Route(int) (time.Time, error) { return time.Now(), nil }

// The form of the JSON is that of docs/loadtest.md: who changes it changes scenario.Schema, unless fields are added.
func TestSchema(t *testing.T) {
	l := measure.Latency{Samples: 1, First: 2, Median: 3, P99: 4, Last: 5}
	r := scenario.Report{Schema: scenario.Schema, Target: "server:15010", Protocol: "Delta", TLS: true, Clients: 2,
		Kinds:  []scenario.Kind{{Name: "sidecar", Clients: 2}},
		Shared: 1, Began: time.Unix(1_700_000_000, 0).UTC(), Ended: 1, FirstError: "reset", Resources: 9,
		Phases: []scenario.Phase{{Name: "endpoint", Took: 1, Changes: 1, Concerned: 2, Latency: l,
			Each: []measure.Latency{l}, Distribution: []time.Duration{2, 5},
			Staleness: []measure.Latency{l}, Missing: 1, Ended: 1,
			Types: map[string]sidecar.Count{"EDS": {Messages: 1, Bytes: 2, Resources: 3, Useless: 4, UselessBytes: 5,
				Refused: 6}},
			CPU: 1, Resident: 2, Heap: 3, Peak: 4, Growth: 5.5, Own: 6, OwnResident: 7}},
		Samples: []scenario.Sample{{Seconds: 1.5, Phase: "endpoint", Ready: 2, Streams: 2, Messages: 3, Bytes: 4,
			Process: measure.Process{CPU: 5, Resident: 6, Peak: 7, Heap: 8}}}}
	got, err := json.MarshalIndent(r, "", "  ")
	must(t, err)
	got = append(got, '\n')
	if flag.Lookup("update").Value.String() == "true" {
		must(t, os.WriteFile("testdata/report.json", got, 0o644))
	}
	want, err := os.ReadFile("testdata/report.json")
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("got\n%s", got)
	}
	var back scenario.Report
	must(t, json.Unmarshal(want, &back))
	if !reflect.DeepEqual(back, r) {
		t.Errorf("%+v", back)
	}
}

func TestNodesOfKinds(t *testing.T) {
	w := build(t)
	target, _ := w.serve()
	o := w.options(target, 1)
	o.Gateways = 1
	if _, err := scenario.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no gateways") {
		t.Error(err)
	}
	c := scenario.Clients{Sidecars: 1, Proxyless: 2, Destinations: 2}
	fleet := c.Fleet(w.mesh, []wire.Endpoint{target})
	s, err := fleet.Spec(2)
	must(t, err)
	if s.Kind != sidecar.Proxyless || !strings.Contains(string(s.Node), "GENERATOR") || len(s.Listeners) != 2 ||
		s.Listeners[0] != w.mesh.Host(1)+":80" {
		t.Errorf("%+v", s)
	}
}
