package gen

import (
	"strings"
	"testing"

	udpapb "github.com/cncf/xds/go/udpa/type/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestFiltersNeedWhatNodesListThemBy takes each filter of each list: its row needs the extension that a node lists by
// the type of the filter's configuration, and none where the type is one of Envoy's own that is in every build.
func TestFiltersNeedWhatNodesListThemBy(t *testing.T) {
	mesh := istio.Mesh(&meshconfig.MeshConfig{}, "", "").HTTP
	for _, class := range []ListenerClass{SidecarOutbound, SidecarInbound, GatewayListener, ProxylessClient,
		ProxylessServer} {
		tokens := &value.RequestAuthentication{Rules: []value.TokenRule{{Issuer: "x"}}}
		checkRows(t, httpFilterList(), HTTPConnectionManagerKey{Mesh: mesh, Class: class,
			DynamicDNS: DynamicDNS{Served: true}, Access: AccessKey{Policies: value.Policies{
				Tokens: value.SequenceOf([]*value.RequestAuthentication{tokens})}}})
	}
	asked := value.Policies{Asked: value.Asked{Provider: &value.AuthorizationProvider{GRPC: true, Host: "x"}}}
	checkRows(t, networkFilterList(), filterChain{meetsPeers: true, tcp: tcpTo("x"), access: AccessKey{Policies: asked},
		http: HTTPConnectionManager(HTTPConnectionManagerKey{Mesh: mesh, StatPrefix: "x", RouteName: "x"})})
	checkRows(t, upstreamFilterList(), struct{}{})
}

func checkRows[K any](t *testing.T, list []filterRow[K], k K) {
	t.Helper()
	names := map[string]bool{}
	for _, row := range list {
		typ := configType(t, row.config(k))
		if want := value.ExtensionTypes()[typ]; row.needs != want {
			t.Errorf("%s has a %s and needs %b, want %b", row.name, typ, row.needs, want)
		} else if want == 0 && !strings.HasPrefix(typ, "envoy.extensions.") {
			t.Errorf("%s has a %s, which is no extension of Envoy's own: add it to value.ExtensionTypes", row.name, typ)
		}
		if rules := row.name == httpRBAC || row.name == tcpRBAC; names[row.name] && !rules { // one for each action
			t.Errorf("%s stands twice in a list", row.name)
		}
		names[row.name] = true
	}
	for _, f := range generate(list, 0, k) {
		if value.ExtensionTypes()[configType(t, f.config)] != 0 {
			t.Errorf("%s goes to a proxy that was built without it", f.name)
		}
	}
}

// configType returns the type of a configuration, of a TypedStruct that of what it stands for.
func configType(t *testing.T, a *anypb.Any) string {
	t.Helper()
	typ := strings.TrimPrefix(a.GetTypeUrl(), typePrefix)
	if typ != string((&udpapb.TypedStruct{}).ProtoReflect().Descriptor().FullName()) {
		return typ
	}
	inner := &udpapb.TypedStruct{}
	if err := proto.Unmarshal(a.GetValue(), inner); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(inner.GetTypeUrl(), typePrefix)
}
