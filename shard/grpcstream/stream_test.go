package grpcstream

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/xdstype"
)

func TestStateOfTheWorld(t *testing.T) {
	h := start(t, Options{})
	c := h.sotw(t)
	must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.EndpointURL,
		ResourceNames: []string{"b", "a"}}))
	e := h.backend.next(t, "attach")
	if e.proxy.ID != nodeOf(1).Id || e.req.Delta || e.req.TypeURL != xdstype.EndpointURL ||
		!slices.Equal(slices.Collect(e.req.Names.All()), []string{"a", "b"}) {
		t.Errorf("first request: %+v", e)
	}
	e.stream.Send(xdstype.EndpointURL, encodecache.NewAssembler("me").SotW(encodecache.Header{TypeURL: xdstype.EndpointURL,
		Version: "v1", Nonce: "n1"}, []*encodecache.Entry{leaf("a", 10), leaf("b", 3000)}))
	got, err := c.Recv()
	must(t, err)
	if got.Nonce != "n1" || got.VersionInfo != "v1" || len(got.Resources) != 2 || len(got.Resources[1].Value) != 3000 ||
		got.ControlPlane.Identifier != "me" {
		t.Error("response:", got.Nonce, got.VersionInfo, len(got.Resources))
	}
	must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.EndpointURL,
		ResourceNames: []string{"b", "a"}, VersionInfo: "v1",
		ResponseNonce: "n1", ErrorDetail: &statuspb.Status{Code: 3, Message: "no"}}))
	r := h.backend.next(t, "receive")
	if r.id != e.id || r.req.Names != e.req.Names || r.req.Nonce != "n1" || r.req.Version != "v1" ||
		r.req.Error.GetMessage() != "no" || r.req.Node != nil {
		t.Errorf("second request: %+v", r)
	}
	must(t, c.CloseSend())
	if _, err := c.Recv(); err != io.EOF {
		t.Error("a client that half-closes gets", err)
	}
	h.backend.next(t, "detach")
}

func TestDelta(t *testing.T) {
	h := start(t, Options{})
	c := h.delta(t)
	must(t, c.Send(&discoveryv3.DeltaDiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.RouteURL,
		ResourceNamesSubscribe:   []string{"80", "*"},
		ResourceNamesUnsubscribe: []string{"x"}, InitialResourceVersions: map[string]string{"80": "v"}}))
	e := h.backend.next(t, "attach")
	if !e.req.Delta || !slices.Equal(slices.Collect(e.req.Subscribe.All()), []string{"*", "80"}) ||
		!slices.Equal(slices.Collect(e.req.Unsubscribe.All()), []string{"x"}) || e.req.Initial.All()["80"] != "v" {
		t.Errorf("first request: %+v", e.req)
	}
	e.stream.Send(xdstype.RouteURL, encodecache.AssembleDelta(encodecache.Header{TypeURL: xdstype.RouteURL, Version: "sys",
		Nonce: "7"}, []*encodecache.Entry{leaf("80", 10)}, []string{"gone"}))
	got, err := c.Recv()
	must(t, err)
	if got.Nonce != "7" || got.Resources[0].Name != "80" || got.Resources[0].Version != leaf("80", 10).Version() ||
		got.RemovedResources[0] != "gone" {
		t.Error("response:", got)
	}
	must(t, c.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.RouteURL, ResponseNonce: "7"}))
	if r := h.backend.next(t, "receive"); r.req.Nonce != "7" || r.req.Subscribe != nil || r.req.Initial != nil {
		t.Errorf("ACK: %+v", r.req)
	}
}

// One Response goes to many streams at once, and is the same for each.
func TestOneResponseForManyStreams(t *testing.T) {
	h := start(t, Options{})
	const clients = 20
	var streams []shard.Stream
	var conns []discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	for i := range clients {
		c := h.sotw(t)
		must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(i), TypeUrl: xdstype.ClusterURL}))
		streams, conns = append(streams, h.backend.next(t, "attach").stream), append(conns, c)
	}
	r := pieces("1", 100)
	for range 3 {
		for _, s := range streams {
			s.Send(xdstype.ClusterURL, r)
		}
		for _, c := range conns {
			got, err := c.Recv()
			must(t, err)
			if got.Nonce != "1" || len(got.Resources) != 100 {
				t.Fatal("response differs:", got.Nonce, len(got.Resources))
			}
		}
	}
}

// TestClose: Close ends the handler, with its status, though the handler waits for a request.
func TestClose(t *testing.T) {
	h := start(t, Options{})
	c := h.sotw(t)
	must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
	s := h.backend.next(t, "attach").stream
	s.Close(status.Error(codes.ResourceExhausted, "too much"))
	s.Close(errors.New("only the first counts"))
	_, err := c.Recv()
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "too much") {
		t.Error(err)
	}
	h.backend.next(t, "detach")
	s.Send(xdstype.ClusterURL, response("late", 10)) // does nothing
}

func TestRefusalsOfFirstRequests(t *testing.T) {
	for _, tc := range []struct {
		name   string
		attach error
		first  *discoveryv3.DiscoveryRequest
		code   codes.Code
		text   string
	}{
		{"no node", nil, &discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ClusterURL}, codes.InvalidArgument, "it has no id"},
		{"not attached", status.Error(codes.Unavailable, "full"), &discoveryv3.DiscoveryRequest{Node: nodeOf(1)},
			codes.Unavailable, "full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, Options{})
			h.backend.refuse = tc.attach
			c := h.sotw(t)
			must(t, c.Send(tc.first))
			if _, err := c.Recv(); status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.text) {
				t.Error(err)
			}
			if n := len(h.backend.events); n != 0 {
				t.Error(n, "events")
			}
		})
	}
}
