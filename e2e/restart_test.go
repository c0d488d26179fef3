package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/xdstype"
)

// TestRestart kills pilotd and starts it again: nothing is lost meanwhile, nothing that
// a client has is sent again, and the next change arrives.
func TestRestart(t *testing.T) {
	for _, where := range []struct {
		name string
		f    func(*testing.T) parts.Objects
	}{{"cluster", inCluster}, {"directory", inDirectory}} {
		t.Run(where.name, func(t *testing.T) { restart(t, where.f) })
	}
}

// tapped is a caller whose stream is watched.
type tapped struct {
	caller
	tap      *parts.Tap
	protocol parts.Protocol
	// before is the number of streams before the restart.
	before int
}

func restart(t *testing.T, where func(*testing.T) parts.Objects) {
	w := newWorld(t, where, baseMesh()+weights(100, 0))
	w.backends()
	from := w.network.Pod(t, outsider().ip)
	callers := tappedCallers(w, from)
	grpc := parts.StartGRPCClient(t, w.network.Pod(t, clientGRPC().ip), clientGRPC().workload(), w.pilotd.Address(),
		"xds:///"+webHost+":7070")
	eventuallyCalls(t, grpc, 3, "web-v1")
	for _, c := range callers {
		c.envoy.AwaitReady()
		parts.Eventually(t, c.name+" is answered", func() error { return c.only(3, "web-v1") })
	}
	for _, c := range callers {
		c.before = c.tap.Streams()
	}
	parts.Throughout(t, "requests while pilotd is away and comes back", func() error {
		for _, c := range callers {
			if err := c.only(1, "web-v1"); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		return nil
	}, func() {
		w.pilotd.Kill()
		w.pilotd.Start()
		for _, c := range callers {
			parts.Eventually(t, c.name+" is connected again", c.answeredAgain)
		}
	})
	// What pilotd still wants to send on reconnecting comes before the next change.
	w.objects.Apply(weights(0, 100))
	eventuallyCalls(t, grpc, 20, "web-v2-a", "web-v2-b")
	for _, c := range callers {
		parts.Eventually(t, c.name+" has the change", func() error { return c.only(20, "web-v2-a", "web-v2-b") })
		t.Run(c.name, c.nothingRepeated)
		if err := c.envoy.NothingRefused(); err != nil {
			t.Error(err)
		}
		for _, reason := range c.tap.Refused() {
			t.Errorf("%s: %s", c.name, reason)
		}
	}
}

func tappedCallers(w *world, from *testnet.Pod) []*tapped {
	var callers []*tapped
	add := func(protocol parts.Protocol, start func(xds string) caller) {
		tap := parts.StartTap(w.t, w.pilotd.Address())
		callers = append(callers, &tapped{caller: start(tap.Addr), tap: tap, protocol: protocol})
	}
	add(parts.Delta, func(xds string) caller { return w.sidecar(clientDelta(), parts.Delta, xds) })
	add(parts.SotW, func(xds string) caller { return w.sidecar(clientSotW(), parts.SotW, xds) })
	add(parts.Delta, func(xds string) caller { return w.gateway(gatewayDelta(), parts.Delta, xds, from) })
	add(parts.SotW, func(xds string) caller { return w.gateway(gatewaySotW(), parts.SotW, xds, from) })
	return callers
}

// answeredAgain returns nil once pilotd has said something on a new stream: every stream gets an answer (protocol.md,
// rule 2).
func (c *tapped) answeredAgain() error {
	if len(c.tap.Passed(c.before)) == 0 {
		return errors.New("no answer on a new stream")
	}
	return nil
}

// nothingRepeated checks what the new streams brought against what the Envoy had. Delta
// says it all with an empty answer; SotW has to repeat one resource of a type that may be
// answered in part (protocol.md, rule 2 and "Never counted as useless").
func (c *tapped) nothingRepeated(t *testing.T) {
	all := c.tap.Passed(0)
	had := slices.DeleteFunc(slices.Clone(all), func(p parts.Passed) bool { return p.Stream >= c.before })
	again := c.tap.Passed(c.before)
	repeats := parts.Hold(had).Repeats(again)
	streams := make(map[int]bool)
	for _, p := range again {
		streams[p.Stream] = true
	}
	if c.protocol == parts.SotW && len(repeats) <= len(streams) && !slices.ContainsFunc(repeats, ofRoot) {
		return
	}
	if len(repeats) > 0 {
		t.Errorf("sent again though the Envoy has it:\n%s", strings.Join(repeats, "\n"))
	}
}

// ofRoot reports whether a repeated resource is of a type whose answers are complete.
func ofRoot(repeat string) bool {
	kind, _, _ := strings.Cut(repeat, " ")
	return kind == "Cluster" || kind == "Listener"
}

const (
	lateVIP  = "10.96.1.2"
	lateHost = "late.shop.svc.cluster.local"
)

func latePod() pod { return pod{"late", "shop", "10.244.2.9", "app: late"} }

// TestRestartFreesWarmingCluster breaks the stream between a new cluster and its
// endpoints. The Envoy comes back asking for nothing but endpoints; without them the
// cluster would stay warming for ever and hold up every later one.
func TestRestartFreesWarmingCluster(t *testing.T) {
	for _, protocol := range []parts.Protocol{parts.Delta, parts.SotW} {
		t.Run(string(protocol), func(t *testing.T) { freesWarmingCluster(t, protocol) })
	}
}

func freesWarmingCluster(t *testing.T, protocol parts.Protocol) {
	w := newWorld(t, inDirectory, baseMesh()+weights(100, 0))
	w.backends()
	parts.StartEcho(t, w.network.Pod(t, latePod().ip), ":8080", "late")
	tap := parts.StartTap(t, w.pilotd.Address())
	client := clientDelta()
	n := w.network.Pod(t, client.ip)
	envoy := parts.StartEnvoy(t, n, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: protocol, Workload: client.workload(), XDS: tap.Addr, Secrets: w.secrets,
	})
	envoy.AwaitReady()

	tap.Hold(xdstype.EndpointURL)
	w.objects.Apply(latePod().yaml() + service("shop/late", lateVIP, "app: late",
		"{name: http, port: 80, targetPort: 8080}") +
		slice("late", "shop", "{name: http, port: 8080, protocol: TCP}", latePod()))
	parts.Eventually(t, "the new cluster warms", func() error {
		names, err := envoy.Warming()
		if err == nil && !slices.Contains(names, "outbound|80||"+lateHost) {
			err = fmt.Errorf("warming: %v", names)
		}
		return err
	})
	w.pilotd.Kill()
	tap.Break()
	tap.Release(xdstype.EndpointURL)
	w.pilotd.Start()

	parts.Eventually(t, "the cluster is warm", func() error {
		names, err := envoy.Warming()
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("warming: %v", names)
		}
		return err
	})
	parts.Eventually(t, "the new service answers", func() error {
		counts, err := parts.Names(3, func() (parts.Answer, error) {
			return parts.Ask(n.Client(), "http://"+lateVIP+":80/", lateHost)
		})
		if err != nil {
			return err
		}
		return onlyFrom(counts, "late")
	})
	if err := envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
}
