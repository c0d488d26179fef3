package secure

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/pilotd/pilotd/xdstype"
)

// ads is a stream of a client that asks for clusters first, and then for secrets by name.
type ads interface {
	// subscribe asks for names, and takes back that others are asked for.
	subscribe(names, not []string)
	// recv returns the next response, in the words of Delta.
	recv() (*discoveryv3.DeltaDiscoveryResponse, error)
	// answer ACKs a response, or refuses it with a text that quotes it all.
	answer(r *discoveryv3.DeltaDiscoveryResponse, refused bool) error
	close()
}

// stream opens one, with a connection of its own.
func (h *house) stream(a *agent, node *corev3.Node, sotw bool) ads {
	h.t.Helper()
	conn := h.dial(*a)
	ctx, cancel := context.WithCancel(with(""))
	base := base{h: h, end: func() { cancel(); _ = conn.Close() }}
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	if sotw {
		s, err := client.StreamAggregatedResources(ctx)
		if err == nil {
			err = s.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: xdstype.ClusterURL})
		}
		base.check(err)
		return &sotwStream{base: base, s: s, names: map[string]struct{}{}}
	}
	s, err := client.DeltaAggregatedResources(ctx)
	if err == nil {
		err = s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: xdstype.ClusterURL})
	}
	base.check(err)
	return &deltaStream{base, s}
}

// base is what streams of both variants have.
type base struct {
	h   *house
	end func()
}

func (b base) close() { b.end() }

// check fails the test but for a stream that the server has ended already: that is for recv to say.
func (b base) check(err error) {
	b.h.t.Helper()
	if err != nil && !errors.Is(err, io.EOF) {
		b.h.t.Fatal(err)
	}
}

func quoting(r *discoveryv3.DeltaDiscoveryResponse, refused bool) *statuspb.Status {
	if !refused {
		return nil
	}
	return &statuspb.Status{Code: int32(codes.InvalidArgument), Message: "bad: " + r.String()}
}

type deltaStream struct {
	base
	s grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
}

func (d *deltaStream) subscribe(names, not []string) {
	d.h.t.Helper()
	d.check(d.s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL, ResourceNamesSubscribe: names,
		ResourceNamesUnsubscribe: not}))
}

func (d *deltaStream) recv() (*discoveryv3.DeltaDiscoveryResponse, error) { return d.s.Recv() }

func (d *deltaStream) answer(r *discoveryv3.DeltaDiscoveryResponse, refused bool) error {
	return d.s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce,
		ErrorDetail: quoting(r, refused)})
}

type sotwStream struct {
	base
	s grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]

	mu sync.Mutex
	// Guarded by mu, and sending with it.
	names          map[string]struct{}
	version, nonce string // of the secrets that it has taken last, and was sent last
}

func (s *sotwStream) subscribe(names, not []string) {
	s.h.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.names[name] = struct{}{}
	}
	for _, name := range not {
		delete(s.names, name)
	}
	s.check(s.ask(nil))
}

// ask asks for all names that it wants. The caller holds mu.
func (s *sotwStream) ask(refused *statuspb.Status) error {
	return s.s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.SecretURL, VersionInfo: s.version,
		ResponseNonce: s.nonce, ResourceNames: slices.Sorted(maps.Keys(s.names)), ErrorDetail: refused})
}

func (s *sotwStream) recv() (*discoveryv3.DeltaDiscoveryResponse, error) {
	r, err := s.s.Recv()
	if err != nil {
		return nil, err
	}
	out := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.TypeUrl, Nonce: r.Nonce, SystemVersionInfo: r.VersionInfo}
	for _, resource := range r.Resources {
		out.Resources = append(out.Resources, &discoveryv3.Resource{Resource: resource})
	}
	return out, nil
}

func (s *sotwStream) answer(r *discoveryv3.DeltaDiscoveryResponse, refused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.TypeUrl != xdstype.SecretURL {
		return s.s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: r.TypeUrl, VersionInfo: r.SystemVersionInfo,
			ResponseNonce: r.Nonce})
	}
	if s.nonce = r.Nonce; !refused {
		s.version = r.SystemVersionInfo
	}
	return s.ask(quoting(r, refused))
}
