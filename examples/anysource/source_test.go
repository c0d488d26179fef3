package anysource_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/examples/anysource"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is a type that pilotd knows nothing of.
const thing = "type.googleapis.com/example.Thing"

// serve runs f with a Source that is served, and a way to connect to it.
func serve(t *testing.T, f func(*anysource.Source, discoveryv3.AggregatedDiscoveryServiceClient)) {
	source, l := anysource.New(thing), bufconn.Listen(1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- source.Serve(ctx, l) }()
	conn, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	f(source, discoveryv3.NewAggregatedDiscoveryServiceClient(conn))
	_ = conn.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// texts returns resources of one type whose bytes are text, "name=text …".
func texts(words string) map[string][]byte {
	out := map[string][]byte{}
	for _, w := range strings.Fields(words) {
		name, text, _ := strings.Cut(w, "=")
		out[name] = []byte(text)
	}
	return out
}

// delta is a Delta stream of a node.
type delta struct {
	t      *testing.T
	node   string
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	last   *discoveryv3.DeltaDiscoveryResponse
}

func newDelta(t *testing.T, c discoveryv3.AggregatedDiscoveryServiceClient, node string) *delta {
	s, err := c.DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &delta{t: t, node: node, stream: s}
}

func (d *delta) send(r *discoveryv3.DeltaDiscoveryRequest) {
	r.Node = &corev3.Node{Id: d.node}
	if err := d.stream.Send(r); err != nil {
		d.t.Fatal(err)
	}
}

// ask subscribes to names and unsubscribes from those that begin with "-".
func (d *delta) ask(url string, names ...string) {
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url}
	for _, n := range names {
		if gone, ok := strings.CutPrefix(n, "-"); ok {
			r.ResourceNamesUnsubscribe = append(r.ResourceNamesUnsubscribe, gone)
		} else {
			r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, n)
		}
	}
	d.send(r)
}

// expect receives a response, which must be as in want, "TYPE name=text -removed", and ACKs it, or refuses it for the
// reason refuse.
func (d *delta) expect(want, refuse string) {
	d.t.Helper()
	r, err := d.stream.Recv()
	if err != nil {
		d.t.Fatal(err)
	}
	words := []string{r.TypeUrl[strings.LastIndexByte(r.TypeUrl, '.')+1:]}
	for _, x := range r.Resources {
		if x.Version == "" {
			d.t.Errorf("%s has no version", x.Name)
		}
		words = append(words, x.Name+"="+string(x.Resource.Value))
	}
	for _, gone := range r.RemovedResources {
		words = append(words, "-"+gone)
	}
	slices.Sort(words[1:])
	if got := strings.Join(words, " "); got != want {
		d.t.Errorf("got %q, want %q", got, want)
	}
	d.last = r
	ack := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
	if refuse != "" {
		ack.ErrorDetail = &statuspb.Status{Message: refuse}
	}
	d.send(ack)
}

// A Delta client of an unknown type: wildcard, updates, on-demand names, names that are not there, removal.
func TestDeltaOfAnUnknownType(t *testing.T) {
	serve(t, func(s *anysource.Source, c discoveryv3.AggregatedDiscoveryServiceClient) {
		s.Set("", anysource.Resources{thing: texts("a=1 b=1")})
		all := newDelta(t, c, "all")
		all.ask(thing)
		all.expect("Thing a=1 b=1", "")
		some := newDelta(t, c, "some")
		some.ask(thing, "a", "gone")
		some.expect("Thing -gone a=1", "")
		s.Set("", anysource.Resources{thing: texts("a=1 b=2 gone=3")})
		all.expect("Thing b=2 gone=3", "")
		some.expect("Thing gone=3", "")
		some.ask(thing, "b", "-a")
		some.expect("Thing b=2", "")
		s.Set("", anysource.Resources{thing: texts("a=4 b=2")})
		all.expect("Thing -gone a=4", "")
		some.expect("Thing -gone", "")
	})
}

// A node that has resources of its own gets these, and those of all others when they are cleared.
func TestResourcesOfANode(t *testing.T) {
	serve(t, func(s *anysource.Source, c discoveryv3.AggregatedDiscoveryServiceClient) {
		s.Set("", anysource.Resources{thing: texts("a=all")})
		s.Set("one", anysource.Resources{thing: texts("a=one")})
		one, other := newDelta(t, c, "one"), newDelta(t, c, "other")
		one.ask(thing)
		one.expect("Thing a=one", "")
		other.ask(thing)
		other.expect("Thing a=all", "")
		s.Clear("one")
		one.expect("Thing a=all", "")
		s.Set("", anysource.Resources{thing: texts("a=new")})
		one.expect("Thing a=new", "")
		other.expect("Thing a=new", "")
	})
}

// Endpoints that the source has ready made are served like any other type, after the clusters that they warm.
func TestEndpointsOfASource(t *testing.T) {
	serve(t, func(s *anysource.Source, c discoveryv3.AggregatedDiscoveryServiceClient) {
		mesh := func(cluster, endpoints string) anysource.Resources {
			return anysource.Resources{xdstype.ClusterURL: texts(cluster), xdstype.EndpointURL: texts(endpoints)}
		}
		s.Set("", mesh("c=1", "c=1"))
		d := newDelta(t, c, "one")
		d.ask(xdstype.ClusterURL)
		d.expect("Cluster c=1", "")
		d.ask(xdstype.EndpointURL, "c")
		d.expect("ClusterLoadAssignment c=1", "")
		s.Set("", mesh("c=1", "c=2"))
		d.expect("ClusterLoadAssignment c=2", "")
		s.Set("", mesh("c=2", "c=2"))
		d.expect("Cluster c=2", "")
		d.expect("ClusterLoadAssignment c=2", "") // a changed cluster warms until its endpoints come again
	})
}

// What a client refuses is taken back to what it accepted last, and sent again when it changes.
func TestRefusal(t *testing.T) {
	serve(t, func(s *anysource.Source, c discoveryv3.AggregatedDiscoveryServiceClient) {
		s.Set("", anysource.Resources{thing: texts("a=1 b=1")})
		d := newDelta(t, c, "one")
		d.ask(thing)
		d.expect("Thing a=1 b=1", "")
		s.Set("", anysource.Resources{thing: texts("a=bad b=1")})
		d.expect("Thing a=bad", "bad")
		d.expect("Thing a=1", "")
		s.Set("", anysource.Resources{thing: texts("a=2 b=1")})
		d.expect("Thing a=2", "")
	})
}

// A State-of-the-World client with real messages: clusters are complete, and take what is gone with them; the version
// comes back when the content does; a type that is not served gets no answer.
func TestStateOfTheWorld(t *testing.T) {
	serve(t, func(s *anysource.Source, c discoveryv3.AggregatedDiscoveryServiceClient) {
		clusters := func(names ...string) anysource.Resources {
			out := map[string][]byte{}
			for _, n := range names {
				b, err := proto.Marshal(&clusterv3.Cluster{Name: n})
				if err != nil {
					t.Fatal(err)
				}
				out[n] = b
			}
			return anysource.Resources{xdstype.ClusterURL: out}
		}
		stream, err := c.StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send := func(r *discoveryv3.DiscoveryRequest) {
			r.Node = &corev3.Node{Id: "one"}
			if err := stream.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		receive := func(want ...string) string {
			r, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range r.Resources {
				m := &clusterv3.Cluster{}
				if err := a.UnmarshalTo(m); err != nil {
					t.Fatal(err)
				}
				got = append(got, m.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			send(&discoveryv3.DiscoveryRequest{TypeUrl: r.TypeUrl, VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce})
			return r.VersionInfo
		}
		s.Set("", clusters("a", "b"))
		send(&discoveryv3.DiscoveryRequest{TypeUrl: "type.googleapis.com/example.Other"})
		send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ClusterURL})
		first := receive("a", "b")
		s.Set("", clusters("a"))
		receive("a")
		s.Set("", clusters("a", "b"))
		if again := receive("a", "b"); again != first {
			t.Errorf("the version is %s, was %s with the same content", again, first)
		}
	})
}

// Many clients connect at once to a source that answers at once, while it changes: each ends at the newest.
func TestASourceThatAnswersAtOnce(t *testing.T) {
	const clients, changes = 200, 20
	serve(t, func(s *anysource.Source, c discoveryv3.AggregatedDiscoveryServiceClient) {
		done := make(chan error, clients)
		for i := range clients {
			go func() { done <- untilLast(t.Context(), c, fmt.Sprint("node-", i%50), fmt.Sprint(changes-1)) }()
		}
		for i := range changes {
			s.Set("", anysource.Resources{thing: texts(fmt.Sprint("a=", i))})
		}
		for range clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// untilLast returns a client that leaves when it has the text last.
func untilLast(ctx context.Context, c discoveryv3.AggregatedDiscoveryServiceClient, node, last string) error {
	stream, err := c.DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	r := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: thing}
	for {
		if err := stream.Send(r); err != nil {
			return err
		}
		got, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, x := range got.Resources {
			if string(x.Resource.Value) == last {
				return stream.CloseSend()
			}
		}
		r = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: thing, ResponseNonce: got.Nonce}
	}
}
