package scenario_test

import (
	"flag"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/null"
	"github.com/pilotd/pilotd/loadtest/scenario"
	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the report anew")
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve serves a null server whose clients have neither endpoints nor routes, and returns its address.
func serve(t *testing.T) string {
	opening := map[string][]byte{}
	for _, of := range []xdstype.Type{xdstype.Cluster, xdstype.Listener} {
		b, err := proto.Marshal(&discoveryv3.DiscoveryResponse{TypeUrl: of.URL(), Nonce: "1", VersionInfo: "1"})
		must(t, err)
		opening[of.URL()] = b
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := null.New(opening)
	served := make(chan error, 1)
	go func() { served <- s.GRPC().Serve(l) }()
	t.Cleanup(func() { s.GRPC().Stop(); <-served })
	return l.Addr().String()
}

func TestConnectAndReconnect(t *testing.T) {
	const clients = 10
	r, err := scenario.Run(t.Context(), scenario.Options{Targets: []wire.Endpoint{wire.At(serve(t))},
		Clients: scenario.Clients{Sidecars: clients}, Mesh: mesh.New(mesh.Usual(4)),
		Scenarios: []string{"reconnect"}, Patience: time.Minute})
	must(t, err)
	var phases []string
	for _, p := range r.Phases {
		phases = append(phases, p.Name)
		if p.Latency.Samples != clients || p.Missing != 0 || p.Types["CDS"].Messages != clients ||
			len(p.Distribution) != 101 {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(phases, []string{"connect", "reconnect"}) || r.Ended != 0 {
		t.Error(phases, r.Ended, r.FirstError)
	}
	var b strings.Builder
	must(t, r.Write(&b))
	must(t, scenario.WriteRatios(&b, r, r))
	if text := b.String(); !strings.Contains(text, "reconnect") || !strings.Contains(text, "1.00") {
		t.Error(text)
	}
}

func TestWhatCannotRunIsSaid(t *testing.T) {
	for scenarios, want := range map[string]string{"route": "needs a mesh to edit", "dance": "no scenario"} {
		_, err := scenario.Run(t.Context(), scenario.Options{Clients: scenario.Clients{Sidecars: 1},
			Mesh: mesh.New(mesh.Usual(1)), Scenarios: []string{scenarios}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(scenarios, err)
		}
	}
}

// A server that is not there ends the run with what was missing, when patience is at its end.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	r, err := scenario.Run(t.Context(), scenario.Options{Targets: []wire.Endpoint{wire.At(address)},
		Clients: scenario.Clients{Sidecars: 2}, Mesh: mesh.New(mesh.Usual(1)), Patience: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "2 of the clients") || r.Ended < 2 ||
		!strings.Contains(r.FirstError, "refused") {
		t.Errorf("%v %+v", err, r)
	}
}
