package gen_test

import (
	"slices"
	"testing"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/check"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestRoutingClaims: names of headers that stand for claims are matched by what the filter for tokens found, and are no
// headers.
func TestRoutingClaims(t *testing.T) {
	for name, want := range map[string][]string{"@request.auth.claims.a": {"a"}, "@request.auth.claims.a.b": {"a", "b"},
		"@Request.Auth.Claims[a][b.c]": {"a", "b.c"}, "@request.auth.claims": nil, "@request.auth.claimsx": nil,
		"@request.auth.claims[a": nil, "x": nil} {
		if got := value.RoutingClaim(name); !slices.Equal(got, want) {
			t.Errorf("%s leads to %q, want %q", name, got, want)
		}
	}
	spec := &networking.VirtualService{}
	fromYAML(t, `{hosts: [a.example], http: [{match: [{headers: {"@request.auth.claims.group": {prefix: adm}, x: {exact: v}},
		withoutHeaders: {"@request.auth.claims[a][b]": {exact: z}}}], route: [{destination: {host: web}}]}]}`, spec)
	vh := gen.VirtualHost(gen.VirtualHostKey{Host: "a.example", Port: 80, Mesh: listenerMesh().Routes,
		Routes: gen.RoutesKey{Service: &value.VirtualService{Routing: istio.Routing(spec)}}})
	m := vh.GetRoutes()[0].GetMatch()
	if len(m.GetHeaders()) != 1 || m.GetHeaders()[0].GetName() != "x" || len(m.GetDynamicMetadata()) != 2 {
		t.Fatalf("the route matches %v", m)
	}
	for i, c := range m.GetDynamicMetadata() {
		last := c.GetPath()[len(c.GetPath())-1].GetKey()
		if c.GetFilter() != "envoy.filters.http.jwt_authn" || c.GetPath()[0].GetKey() != "payload" ||
			last != []string{"group", "b"}[i] || c.GetInvert() != (i == 1) {
			t.Errorf("claim %d is matched by %v", i, c)
		}
	}
	if list := check.VirtualHost(&routepb.VirtualHost{Name: "a", Domains: []string{"*"}, Routes: vh.GetRoutes()},
		100); len(list) > 0 {
		t.Error(list)
	}
}
