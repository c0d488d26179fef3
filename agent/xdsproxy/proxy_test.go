package xdsproxy

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/agent/cell"
	"github.com/pilotd/pilotd/agent/upstream"
	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/xdstype"
)

type (
	deltaRequest  = discoveryv3.DeltaDiscoveryRequest
	deltaResponse = discoveryv3.DeltaDiscoveryResponse
)

// scene is an Envoy, the proxy, and a control plane, each played by the test.
type scene struct {
	t *testing.T
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	proxy *Proxy
	envoy discoveryv3.AggregatedDiscoveryServiceClient

	requests  chan *deltaRequest
	responses chan *deltaResponse
	end       chan error
	tables    chan *ndsv1.NameTable
	health    cell.Cell[Health]
}

// DeltaAggregatedResources is the control plane's stream.
func (s *scene) DeltaAggregatedResources(
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	go func() {
		for {
			q, err := stream.Recv()
			if err != nil {
				cancel(err)
				return
			}
			s.requests <- q
		}
	}()
	for {
		select {
		case r := <-s.responses:
			if err := stream.Send(r); err != nil {
				return err
			}
		case err := <-s.end:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// StreamAggregatedResources answers each request with an empty response of its type.
func (s *scene) StreamAggregatedResources(
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	for {
		q, err := stream.Recv()
		if err != nil {
			return nil
		}
		s.requests <- &deltaRequest{TypeUrl: q.TypeUrl, ResponseNonce: q.ResponseNonce}
		if q.ResponseNonce == "" {
			if err := stream.Send(&discoveryv3.DiscoveryResponse{TypeUrl: q.TypeUrl, VersionInfo: "1", Nonce: "n"}); err != nil {
				return err
			}
		}
	}
}

// play sets the scene.
func play(t *testing.T, script func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, requests: make(chan *deltaRequest, 16), responses: make(chan *deltaResponse),
			end: make(chan error), tables: make(chan *ndsv1.NameTable, 4)}
		up := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
		go func() { _ = server.Serve(up) }()
		s.proxy = New(Options{Log: slog.New(slog.DiscardHandler), Health: &s.health,
			NameTable: func(n *ndsv1.NameTable) { s.tables <- n },
			Server: upstream.Server{Address: "x", Name: "x", Plaintext: true, Token: "/nowhere",
				Dialer: func(ctx context.Context, _ string) (net.Conn, error) { return up.DialContext(ctx) }}})
		down := bufconn.Listen(1 << 16)
		g := grpc.NewServer()
		s.proxy.Register(g)
		go func() { _ = g.Serve(down) }()
		conn, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return down.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		s.envoy = discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
		script(s)
		conn.Close()
		g.Stop()
		server.Stop()
	})
}

func (s *scene) open() discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
	s.t.Cleanup(cancel)
	stream, err := s.envoy.DeltaAggregatedResources(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return stream
}

// asked is the next request that reaches the control plane.
func (s *scene) asked(url string) *deltaRequest {
	s.t.Helper()
	select {
	case q := <-s.requests:
		if q.TypeUrl != url {
			s.t.Fatalf("%s is asked for, want %s", q.TypeUrl, url)
		}
		return q
	case <-time.After(time.Hour):
		s.t.Fatalf("%s is not asked for", url)
		return nil
	}
}

// Requests and answers pass as they are; after the first for listeners come the agent's own, and the name table stays.
func TestDelta(t *testing.T) {
	play(t, func(s *scene) {
		s.health.Set(&Health{Problem: "it is not well"})
		e := s.open()
		_ = e.Send(&deltaRequest{TypeUrl: xdstype.ClusterURL, Node: &corev3.Node{Id: "me"},
			InitialResourceVersions: map[string]string{"a": "1"}})
		if q := s.asked(xdstype.ClusterURL); q.Node.GetId() != "me" || q.InitialResourceVersions["a"] != "1" {
			t.Error(q)
		}
		s.responses <- &deltaResponse{TypeUrl: xdstype.ClusterURL, Nonce: "1", RemovedResources: []string{"b"}}
		if r, err := e.Recv(); err != nil || r.Nonce != "1" || len(r.RemovedResources) != 1 {
			t.Fatal(r, err)
		}
		_ = e.Send(&deltaRequest{TypeUrl: xdstype.ListenerURL})
		s.asked(xdstype.ListenerURL)
		s.asked(xdstype.NameTableURL)
		if q := s.asked(healthType); q.ErrorDetail.GetMessage() != "it is not well" || q.ResponseNonce != "" {
			t.Error(q)
		}
		s.health.Set(&Health{})
		if q := s.asked(healthType); q.ErrorDetail != nil {
			t.Error(q)
		}
		_ = e.Send(&deltaRequest{TypeUrl: xdstype.ListenerURL, ResponseNonce: "2"})
		s.asked(xdstype.ListenerURL) // names are asked for once

		table, err := anypb.New(&ndsv1.NameTable{Table: map[string]*ndsv1.NameTable_NameInfo{"a": {Ips: []string{"1.1.1.1"}}}})
		if err != nil {
			t.Fatal(err)
		}
		s.responses <- &deltaResponse{TypeUrl: xdstype.NameTableURL, Nonce: "t1",
			Resources: []*discoveryv3.Resource{{Resource: table}}}
		if q := s.asked(xdstype.NameTableURL); q.ResponseNonce != "t1" || q.ErrorDetail != nil {
			t.Error(q)
		}
		if n := <-s.tables; len(n.Table) != 1 {
			t.Error(n)
		}
		s.responses <- &deltaResponse{TypeUrl: xdstype.NameTableURL, Nonce: "t2", RemovedResources: []string{"x"}}
		if q := s.asked(xdstype.NameTableURL); q.ResponseNonce != "t2" {
			t.Error("an empty table is not taken:", q)
		}
		if n := <-s.tables; len(n.Table) != 0 {
			t.Error("names are left:", n)
		}
		s.responses <- &deltaResponse{TypeUrl: xdstype.NameTableURL, Nonce: "t3",
			Resources: []*discoveryv3.Resource{{Resource: &anypb.Any{Value: []byte{0xff}}}}}
		if q := s.asked(xdstype.NameTableURL); q.ErrorDetail.GetCode() != int32(codes.Internal) {
			t.Error("what is no table is taken:", q)
		}
		s.responses <- &deltaResponse{TypeUrl: "type.googleapis.com/of.nobody", Nonce: "4"}
		s.responses <- &deltaResponse{TypeUrl: xdstype.EndpointURL, Nonce: "5"}
		if r, err := e.Recv(); err != nil || r.Nonce != "5" {
			t.Error("what nobody asked for is passed on, or ends the stream:", r, err)
		}
	})
}

func TestSotW(t *testing.T) {
	play(t, func(s *scene) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
		defer cancel()
		e, err := s.envoy.StreamAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = e.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ListenerURL})
		if r, err := e.Recv(); err != nil || r.TypeUrl != xdstype.ListenerURL {
			t.Fatal(r, err)
		}
		s.asked(xdstype.ListenerURL)
		s.asked(xdstype.NameTableURL)
		if n := <-s.tables; len(n.Table) != 0 {
			t.Error(n)
		}
		if q := s.asked(xdstype.NameTableURL); q.ResponseNonce != "n" {
			t.Error(q)
		}
	})
}

// When the control plane ends a stream, or Envoy does, both are ended; a second stream of Envoy ends the first.
func TestEnds(t *testing.T) {
	play(t, func(s *scene) {
		e := s.open()
		_ = e.Send(&deltaRequest{TypeUrl: xdstype.ClusterURL})
		s.asked(xdstype.ClusterURL)
		s.end <- status.Error(codes.ResourceExhausted, "later")
		if _, err := e.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
		first := s.open()
		_ = first.Send(&deltaRequest{TypeUrl: xdstype.ClusterURL})
		s.asked(xdstype.ClusterURL)
		second := s.open()
		_ = second.Send(&deltaRequest{TypeUrl: xdstype.ClusterURL})
		if _, err := first.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		s.asked(xdstype.ClusterURL)
		_ = second.CloseSend()
		if _, err := second.Recv(); err == nil {
			t.Error("it goes on")
		}
		c := &s.proxy.Counts
		if c.UpstreamEnds.Load() != 1 || c.Ends.Load() != 1 || c.UpstreamFailures.Load() != 0 {
			t.Error(c.UpstreamEnds.Load(), c.Ends.Load(), c.UpstreamFailures.Load())
		}
	})
}
