package e2e_test

import (
	"fmt"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// world is one network with pilotd in it and the objects that pilotd reads.
type world struct {
	t       *testing.T
	network *testnet.Network
	objects parts.Objects
	pilotd  *parts.Pilotd
	secrets *parts.Authority
}

// newWorld starts pilotd on a mesh that is there already.
func newWorld(t *testing.T, where func(*testing.T) parts.Objects, mesh string) *world {
	t.Helper()
	w := &world{t: t, network: testnet.New(t), secrets: parts.NewAuthority(t)}
	w.objects = where(t)
	w.objects.Apply(mesh)
	w.pilotd = parts.StartPilotd(t, w.objects.Sources())
	return w
}

func inCluster(t *testing.T) parts.Objects   { return parts.NewCluster(t, parts.StartAPIServer(t)) }
func inDirectory(t *testing.T) parts.Objects { return parts.NewDirectory(t) }

// backends starts what runs in the pods of web: HTTP, gRPC and TCP, each answering with
// the pod's name.
func (w *world) backends() {
	w.t.Helper()
	for _, p := range []pod{webV1(), webV2a(), webV2b()} {
		n := w.network.Pod(w.t, p.ip)
		parts.StartEcho(w.t, n, ":8080", p.name)
		parts.StartGRPCEcho(w.t, n, ":7070", p.name)
		parts.StartTCPEcho(w.t, n, ":9000", p.name)
	}
}

// caller is one way to reach web: through an Envoy.
type caller struct {
	name  string
	envoy *parts.Envoy
	ask   func(headers ...string) (parts.Answer, error)
}

// sidecar starts a client pod with an Envoy beside it.
func (w *world) sidecar(p pod, protocol parts.Protocol, xds string) caller {
	w.t.Helper()
	n := w.network.Pod(w.t, p.ip)
	e := parts.StartEnvoy(w.t, n, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: protocol, Workload: p.workload(), XDS: xds, Secrets: w.secrets,
	})
	client := n.Client()
	return caller{name: p.name, envoy: e, ask: func(headers ...string) (parts.Answer, error) {
		return parts.Ask(client, "http://"+webVIP+":80/", webHost, headers...)
	}}
}

// securePair starts securePod, which answers at each port with a name, and a client, each with an Envoy. It returns the
// client's pod and the Envoys when both are ready.
func (w *world) securePair(t *testing.T, protocol parts.Protocol, names map[string]string) (*testnet.Pod,
	[]*parts.Envoy) {
	t.Helper()
	server, client := w.network.Pod(t, securePod().ip), w.network.Pod(t, clientDelta().ip)
	for port, name := range names {
		parts.StartEcho(t, server, ":"+port, name)
	}
	return client, w.pair(t, protocol, server, client)
}

// pair starts the Envoys of securePod and of a client in their pods. It returns them when both are ready.
func (w *world) pair(t *testing.T, protocol parts.Protocol, server, client *testnet.Pod) []*parts.Envoy {
	t.Helper()
	spec := parts.EnvoySpec{Kind: parts.Sidecar, Protocol: protocol, XDS: w.pilotd.Address(), Secrets: w.secrets}
	spec.Workload = securePod().workload()
	inbound := parts.StartEnvoy(t, server, spec)
	spec.Workload = clientDelta().workload()
	outbound := parts.StartEnvoy(t, client, spec)
	inbound.AwaitReady()
	outbound.AwaitReady()
	return []*parts.Envoy{inbound, outbound}
}

// gateway starts a gateway pod; it is asked from outside the mesh.
func (w *world) gateway(p pod, protocol parts.Protocol, xds string, from *testnet.Pod) caller {
	w.t.Helper()
	n := w.network.Pod(w.t, p.ip)
	e := parts.StartEnvoy(w.t, n, parts.EnvoySpec{
		Kind: parts.Gateway, Protocol: protocol, Workload: p.workload(), XDS: xds, Secrets: w.secrets,
	})
	client := from.Client()
	return caller{name: p.name, envoy: e, ask: func(headers ...string) (parts.Answer, error) {
		return parts.Ask(client, fmt.Sprintf("http://%s:8080/", p.ip), publicHost, headers...)
	}}
}

// only returns nil if n answers in a row come from nobody but those.
func (c caller) only(n int, names ...string) error {
	counts, err := parts.Names(n, func() (parts.Answer, error) { return c.ask() })
	if err != nil {
		return err
	}
	return onlyFrom(counts, names...)
}

// onlyFrom returns nil if every name of names was counted and nothing else was.
func onlyFrom(counts map[string]int, names ...string) error {
	for _, name := range names {
		if counts[name] == 0 {
			return fmt.Errorf("no answer from %s: %v", name, counts)
		}
	}
	if len(counts) != len(names) {
		return fmt.Errorf("answers %v, want only %v", counts, names)
	}
	return nil
}
