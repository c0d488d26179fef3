package grpcstream

import (
	"context"
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/proxy"
)

// What a client has proven reaches the door. A client that has proven nothing, and one that claims to be somebody else,
// are refused with the code for that, before the backend hears of them, and counted.
func TestClientsAreAuthenticated(t *testing.T) {
	web := proxy.Peer{Peer: identity.Peer{Identity: identity.Identity{TrustDomain: "td", Namespace: "shop",
		ServiceAccount: "web"}}}
	for _, c := range []struct {
		name         string
		authenticate func(context.Context) (proxy.Peer, error)
		accept       func(*corev3.Node, proxy.Peer) (*proxy.Proxy, error)
		code         codes.Code
	}{
		{"proven", func(context.Context) (proxy.Peer, error) { return web, nil },
			func(n *corev3.Node, p proxy.Peer) (*proxy.Proxy, error) {
				if p != web {
					return nil, fmt.Errorf("%+v", p)
				}
				return &proxy.Proxy{ID: n.Id}, nil
			}, codes.OK},
		{"not proven", func(context.Context) (proxy.Peer, error) {
			return proxy.Peer{}, status.Error(codes.Unauthenticated, "no")
		}, nil, codes.Unauthenticated},
		{"another one's name", func(context.Context) (proxy.Peer, error) { return web, nil },
			func(*corev3.Node, proxy.Peer) (*proxy.Proxy, error) { return nil, fmt.Errorf("%w: no", proxy.ErrClaim) },
			codes.PermissionDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, Options{Authenticate: c.authenticate, Accept: c.accept})
			s := h.delta(t)
			must(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}}))
			if c.code == codes.OK {
				h.backend.next(t, "attach")
				return
			}
			if _, err := s.Recv(); status.Code(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if n := h.server.Stats().Refused[ReasonIdentity]; n != 1 {
				t.Errorf("%d refusals are counted", n)
			}
			if len(h.backend.events) != 0 {
				t.Error("the backend was told")
			}
		})
	}
}
