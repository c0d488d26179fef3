package proxy

import (
	"errors"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/identity"
)

// A proxy may claim the namespace and the service account that it has proven to be, and no others.
func TestClaims(t *testing.T) {
	web, err := identity.Parse("spiffe://cluster.local/ns/shop/sa/web")
	if err != nil {
		t.Fatal(err)
	}
	proven := Peer{Peer: identity.Peer{Identity: web}}
	unchecked := proven
	unchecked.Unchecked = true
	for _, c := range []struct {
		name, id string
		metadata map[string]any
		peer     Peer
		fits     bool
		account  string
	}{
		{"both", "a.shop", map[string]any{"NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"}, proven, true, "web"},
		{"no service account", "a.shop", map[string]any{"NAMESPACE": "shop"}, proven, true, "web"},
		{"by the id alone", "a.shop", nil, proven, true, "web"},
		{"another namespace", "a.shop", map[string]any{"NAMESPACE": "bank", "SERVICE_ACCOUNT": "web"}, proven, false, ""},
		{"another namespace in the id", "a.bank", nil, proven, false, ""},
		{"no namespace", "a", nil, proven, false, ""},
		{"another service account", "a.shop", map[string]any{"SERVICE_ACCOUNT": "admin"}, proven, false, ""},
		{"unchecked", "a.bank", map[string]any{"SERVICE_ACCOUNT": "admin"}, unchecked, true, "admin"},
		{"nothing proven", "a.bank", map[string]any{"SERVICE_ACCOUNT": "admin"}, Peer{}, true, "admin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			md, err := structpb.NewStruct(c.metadata)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Accept(&corev3.Node{Id: "sidecar~10.0.0.1~" + c.id + "~x", Metadata: md}, c.peer)
			if !c.fits {
				if !errors.Is(err, ErrClaim) {
					t.Error(p, err)
				}
				return
			}
			if err != nil || p.Account != c.account || p.Proven != c.peer.Peer {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}
