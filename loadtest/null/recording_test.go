package null

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wrap(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	must(t, err)
	return a
}

// response holds one resource, which says text if it is of the kind that can be marked.
func response(t *testing.T, of xdstype.Type, text string) []byte {
	t.Helper()
	var m proto.Message
	switch of {
	case xdstype.Cluster:
		m = &clusterv3.Cluster{Name: "a", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}
	case xdstype.Endpoint:
		m = &endpointv3.ClusterLoadAssignment{ClusterName: "a",
			NamedEndpoints: map[string]*endpointv3.Endpoint{text: {}}}
	case xdstype.Listener:
		manager := wrap(
			t,
			&hcmv3.HttpConnectionManager{
				RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: "80"}},
			},
		)
		m = &listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{
			{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager}}}}}}
	case xdstype.Route:
		m = &routev3.RouteConfiguration{Name: "80", VirtualHosts: []*routev3.VirtualHost{{Name: text}}}
	}
	out, err := proto.Marshal(&discoveryv3.DiscoveryResponse{TypeUrl: of.URL(), Nonce: "1", VersionInfo: "1",
		Resources: []*anypb.Any{wrap(t, m)}})
	must(t, err)
	return out
}

// opened is how many requests a client makes until it has everything: four subscriptions and four ACKs. Then its stream
// gets broadcasts.
const opened = 8

// broadcasts are edits that a null server makes.
type broadcasts struct {
	t        *testing.T
	server   *Server
	restored bool
}

func (b *broadcasts) Endpoint(_, n int) (time.Time, error) {
	must(b.t, b.server.Await(b.t.Context(), opened))
	b.server.Broadcast(response(b.t, xdstype.Endpoint, mesh.Address(n)))
	return time.Time{}, nil
}

func (b *broadcasts) Route(n int) (time.Time, error) {
	b.server.Broadcast(response(b.t, xdstype.Route, mesh.Path(n)))
	return time.Time{}, nil
}

func (b *broadcasts) Restore() error { b.restored = true; return nil }

func options(l *bufconn.Listener) sidecar.Options {
	return sidecar.Options{Dial: func(ctx context.Context, _, _ int) (net.Conn, wire.Header, error) {
		conn, err := l.DialContext(ctx)
		return conn, wire.Header{}, err
	},
		Spec:  func(int) (sidecar.Spec, error) { return sidecar.Spec{}, nil },
		Marks: sidecar.Marks{Endpoint: mesh.EndpointMark, Route: mesh.RouteMark}}
}

// What is recorded of a server is what the null server plays, with the number of each change in place of the recorded
// one.
func TestRecordingIsPlayed(t *testing.T) {
	openings := map[string][]byte{}
	for _, of := range sidecar.Types() {
		openings[of.URL()] = response(t, of, "x")
	}
	s, l := New(openings), bufconn.Listen(64<<10)
	served := make(chan error, 1)
	go func() { served <- s.GRPC().Serve(l) }()
	edits := &broadcasts{t: t, server: s}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Record(ctx, options(l), edits)
	s.GRPC().Stop()
	<-served
	must(t, err)
	if !edits.restored || len(r.Opening) != 4 || !bytes.Equal(r.Opening[xdstype.Listener.URL()],
		openings[xdstype.Listener.URL()]) {
		t.Fatalf("%+v", r)
	}

	player, played := New(r.Opening), bufconn.Listen(64<<10)
	go func() { served <- player.GRPC().Serve(played) }()
	o := options(played)
	o.Clients = 3
	events := make(chan string, 100)
	o.Observe = func(_ int, _ time.Time, r *sidecar.Receipt) {
		if r.Ready {
			events <- "ready"
		}
		for _, m := range r.Marks {
			events <- fmt.Sprint(r.Type, " ", m)
		}
	}
	f, err := sidecar.Start(ctx, o)
	must(t, err)
	all := func(want string) {
		for range o.Clients {
			if got := <-events; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	all("ready")
	must(t, player.Await(ctx, opened*o.Clients))
	for _, change := range []string{"endpoint 7", "route 24335", "endpoint 300"} {
		must(t, player.play(r, strings.NewReader(change+"\n")))
		kind, n, _ := strings.Cut(change, " ")
		all(map[string]string{"endpoint": "EDS ", "route": "RDS "}[kind] + n)
	}
	f.Close()
	player.GRPC().Stop()
	<-served
	if err := player.play(r, strings.NewReader("reboot 1\n")); err == nil {
		t.Error("an unknown change is made")
	}
}

func TestRecordSaysWhatIsMissing(t *testing.T) {
	o := sidecar.Options{Dial: func(context.Context, int, int) (net.Conn, wire.Header, error) {
		return nil, wire.Header{}, errors.New("nobody there")
	},
		Spec: func(int) (sidecar.Spec, error) { return sidecar.Spec{}, nil }}
	if _, err := Record(t.Context(), o, &broadcasts{}); err == nil || !strings.Contains(err.Error(), "nobody there") {
		t.Error(err)
	}
}

// With TLS the same is played; its certificate is taken by those alone who take any.
func TestSecureServer(t *testing.T) {
	credentials, err := Credentials()
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	in, end := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(l, &Recording{Opening: map[string][]byte{xdstype.Cluster.URL(): response(t, xdstype.Cluster,
			"")}}, in, credentials)
	}()
	defer func() { must(t, end.Close()); must(t, <-served) }()
	for _, insecure := range []bool{false, true} {
		e, err := wire.At(l.Addr().String()).Secure(wire.Secrets{Insecure: insecure})
		must(t, err)
		came, failed := make(chan struct{}), make(chan error, 1)
		f, err := sidecar.Start(t.Context(), sidecar.Options{Clients: 1,
			Dial: func(ctx context.Context, _, _ int) (net.Conn, wire.Header, error) {
				conn, err := e.Dial(ctx, wire.Account{})
				return conn, wire.Header{Secure: true}, err
			},
			Spec:    func(int) (sidecar.Spec, error) { return sidecar.Spec{}, nil },
			Observe: func(int, time.Time, *sidecar.Receipt) { close(came) },
			Ended: func(_ int, err error) {
				select {
				case failed <- err:
				default:
				}
			}})
		must(t, err)
		select {
		case <-came:
			if !insecure {
				t.Error("a certificate that nobody vouches for is taken")
			}
		case err := <-failed:
			if insecure || !strings.Contains(err.Error(), "certificate") {
				t.Error(err)
			}
		}
		f.Close()
	}
}
