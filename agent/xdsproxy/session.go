package xdsproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/xdstype"
)

// envoyTypes is the prefix of type URLs that Envoy knows; workloadType is one more type that is forwarded to Envoy.
const (
	envoyTypes   = "type.googleapis.com/envoy."
	workloadType = "type.googleapis.com/istio.workload.Workload"
	healthType   = "type.googleapis.com/istio.v1.HealthInformation"
)

// errEnvoyEnded says that Envoy has ended its stream.
var errEnvoyEnded = errors.New("envoy has ended the stream")

// session is one stream of Envoy and its upstream stream.
type session[Q, R any] struct {
	// Immutable.
	proxy   *Proxy
	variant variant[Q, R]
	up      grpc.BidiStreamingClient[Q, R]
	down    grpc.BidiStreamingServer[Q, R]

	// sending serializes requests, because Envoy's and the agent's own come from different goroutines.
	sending sync.Mutex
	// Owned by the reader of requests.
	listeners bool // whether Envoy has requested listeners
	// listening is closed when Envoy has requested listeners.
	listening chan struct{}
}

func (s *session[Q, R]) send(q *Q) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.proxy.Counts.Requests.Add(1)
	return s.up.Send(q)
}

// requests forwards Envoy's requests, and sends the agent's own. It returns the reason for its end.
func (s *session[Q, R]) requests(ctx context.Context) error {
	for {
		q, err := s.down.Recv()
		if err != nil {
			return errEnvoyEnded
		}
		if err := s.send(q); err != nil {
			// The reader of responses receives the upstream's error.
			<-ctx.Done()
			return nil
		}
		if s.listeners || s.variant.url(q) != xdstype.ListenerURL {
			continue
		}
		s.listeners = true
		if s.proxy.options.NameTable != nil {
			if err := s.send(s.variant.request(ask{url: xdstype.NameTableURL})); err != nil {
				continue // the next request ends this loop, as above
			}
		}
		close(s.listening)
	}
}

// responses forwards the responses of the control plane, until the upstream stream ends.
func (s *session[Q, R]) responses() error {
	for {
		r, err := s.up.Recv()
		if err != nil {
			return err
		}
		s.proxy.Counts.Responses.Add(1)
		url := s.variant.answered(r)
		switch {
		case url == xdstype.NameTableURL && s.proxy.options.NameTable != nil:
			err = s.send(s.variant.request(s.nameTable(r)))
		case strings.HasPrefix(url, envoyTypes) || url == workloadType:
			err = s.down.Send(r)
		default:
			s.proxy.options.Log.Warn("an answer of a type that nobody has asked for", "type", fmt.Sprintf("%.200q", url))
		}
		if err != nil {
			return err
		}
	}
}

// nameTable handles a response with a name table and returns the answer to it. A response without one removes all
// names.
func (s *session[Q, R]) nameTable(r *R) ask {
	out := s.variant.ack(r)
	table := &ndsv1.NameTable{}
	if data := s.variant.first(r); data != nil {
		if err := proto.Unmarshal(data, table); err != nil {
			out.problem, out.code = "no NameTable: "+err.Error(), codes.Internal
			s.proxy.options.Log.Error("a name table cannot be read", "error", err)
			return out
		}
	}
	s.proxy.options.NameTable(table)
	return out
}

// tellHealth reports the application's health to the control plane, at the start of each stream and at each change.
func (s *session[Q, R]) tellHealth(ctx context.Context) {
	select {
	case <-s.listening:
	case <-ctx.Done():
		return
	}
	for {
		health, changed := s.proxy.options.Health.Get()
		if health != nil {
			said := ask{url: healthType, problem: health.Problem, code: codes.Internal}
			if err := s.send(s.variant.request(said)); err != nil {
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
