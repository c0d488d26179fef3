package gen_test

import (
	"slices"
	"strings"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpaskpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	httprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcpaskpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// providerOf returns the first provider of a mesh's configuration.
func providerOf(t testing.TB, text string) *value.AuthorizationProvider {
	t.Helper()
	m := &meshconfig.MeshConfig{}
	fromYAML(t, "{extensionProviders: ["+text+"]}", m)
	return istio.Mesh(m, "cluster.local", "").Access.Providers[0]
}

// askedChain returns the chain of a port whose policies ask a server, and the objects that are told of.
func askedChain(t testing.TB, asked value.Asked, p value.Protocol, specs ...string) (*listenerpb.FilterChain, int) {
	t.Helper()
	m := listenerMesh()
	k := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Bind: "0.0.0.0", Target: 8080, Protocol: p,
		Access: accessOf(policiesOf(t, specs...))}
	k.Access.Policies.Asked = asked
	b, faults := gen.EncodeInboundChains(k)
	if len(b) == 0 {
		t.Fatalf("nothing is made: %v", faults)
	}
	return gen.InboundChains(k)[0], len(faults)
}

// filterOf unpacks the first filter of a chain that is of m's type; false if there is none.
func filterOf(t testing.TB, chain *listenerpb.FilterChain, m proto.Message) bool {
	t.Helper()
	for _, f := range chain.GetFilters() {
		if f.GetTypedConfig().MessageIs(m) {
			return f.GetTypedConfig().UnmarshalTo(m) == nil
		}
	}
	if last := chain.GetFilters()[len(chain.GetFilters())-1]; strings.HasSuffix(last.GetName(), "tcp_proxy") {
		return false
	}
	for _, f := range httpManager(t, chain).GetHttpFilters() {
		if f.GetTypedConfig().MessageIs(m) {
			return f.GetTypedConfig().UnmarshalTo(m) == nil
		}
	}
	return false
}

const (
	webProvider = `{name: web, envoyExtAuthzHttp: {service: auth/Ask.auth.example, port: 8000, timeout: 2s, failOpen: true,
		clearRouteCache: true, statusOnError: "503", pathPrefix: /check, includeRequestHeadersInCheck: [x-a, "x-b*", "*-c"],
		includeAdditionalHeadersInCheck: {z: "1", k: "2"}, headersToUpstreamOnAllow: [x-user],
		headersToDownstreamOnDeny: [x-why], headersToDownstreamOnAllow: [x-seen],
		includeRequestBodyInCheck: {maxRequestBytes: 64, allowPartialMessage: true, packAsBytes: true}}}`
	grpcProvider = `{name: grpc, envoyExtAuthzGrpc: {service: ask.auth.example, port: 9000}}`
	askAbout     = `{action: CUSTOM, provider: {name: p}, rules: [{to: [{operation: {ports: ["8080"]}}]}]}`
)

// TestAskedServer: what a provider says stands in the filter that asks it, and its rules note and do not decide.
func TestAskedServer(t *testing.T) {
	chain, told := askedChain(t, value.Asked{Provider: providerOf(t, webProvider)}, value.HTTP, askAbout)
	ask, rules := &httpaskpb.ExtAuthz{}, &httprbacpb.RBAC{}
	if !filterOf(t, chain, ask) || !filterOf(t, chain, rules) || told > 0 {
		t.Fatalf("no server is asked: %v", chain)
	}
	s, names := ask.GetHttpService(), []string{}
	for name := range rules.GetShadowRules().GetPolicies() {
		names = append(names, name)
	}
	for what, ok := range map[string]bool{
		"cluster": s.GetServerUri().GetCluster() == "outbound|8000||ask.auth.example",
		"timeout": s.GetServerUri().GetTimeout().GetSeconds() == 2,
		"path":    s.GetPathPrefix() == "/check",
		"failure": ask.GetFailureModeAllow() && ask.GetStatusOnError().GetCode() == 503 && ask.GetClearRouteCache(),
		"body":    ask.GetWithRequestBody().GetMaxRequestBytes() == 64 && ask.GetWithRequestBody().GetPackAsBytes(),
		"headers in": len(ask.GetAllowedHeaders().GetPatterns()) == 3 &&
			ask.GetAllowedHeaders().GetPatterns()[1].GetPrefix() == "x-b",
		"added":      s.GetAuthorizationRequest().GetHeadersToAdd()[0].GetKey() == "k",
		"upstream":   s.GetAuthorizationResponse().GetAllowedUpstreamHeaders().GetPatterns()[0].GetExact() == "x-user",
		"downstream": s.GetAuthorizationResponse().GetAllowedClientHeaders().GetPatterns()[0].GetExact() == "x-why",
		"on success": s.GetAuthorizationResponse().GetAllowedClientHeadersOnSuccess().GetPatterns()[0].GetExact() == "x-seen",
		"rules":      rules.GetRules() == nil && slices.Equal(names, []string{"istio-ext-authz-p-ns[shop]-policy[p0]-rule[0]"}),
	} {
		if !ok {
			t.Errorf("%s: %v", what, ask)
		}
	}
	chain, told = askedChain(t, value.Asked{Provider: providerOf(t, grpcProvider)}, value.TCP, askAbout)
	tcp := &tcpaskpb.ExtAuthz{}
	if !filterOf(t, chain, tcp) || told > 0 || tcp.GetGrpcService().GetTimeout().GetSeconds() != 600 ||
		tcp.GetGrpcService().GetEnvoyGrpc().GetClusterName() != "outbound|9000||ask.auth.example" ||
		tcp.GetFailureModeAllow() || tcp.GetFilterEnabledMetadata() == nil {
		t.Errorf("bytes: %v", tcp)
	}
	if chain, _ = askedChain(t, value.Asked{Provider: providerOf(t, webProvider)}, value.TCP, askAbout); filterOf(t, chain,
		tcp) || !decide(t, chain, asked{port: 8080}) {
		t.Error("a server that speaks HTTP is asked about bytes")
	}
}

// TestNobodyToAsk: where no server can be asked, what the rules match is denied and nothing else, and the policy is
// told of; one that is tried only does nothing.
func TestNobodyToAsk(t *testing.T) {
	for name, a := range map[string]value.Asked{
		"no provider":      {Problem: "there is none"},
		"what Envoy lacks": {Provider: providerOf(t, `{name: x, envoyExtAuthzHttp: {service: a.b, port: 1, includeAdditionalHeadersInCheck: {"a\nb": c}}}`)},
	} {
		for _, p := range []value.Protocol{value.HTTP, value.TCP} {
			chain, told := askedChain(t, a, p, askAbout)
			request := asked{port: 8080}
			if p == value.HTTP {
				request.method = "GET"
			}
			other := request
			other.port = 1
			if decide(t, chain, request) || !decide(t, chain, other) || told != 1 {
				t.Errorf("%s: passes %v, another %v, told of %d", name, decide(t, chain, request), decide(t, chain, other),
					told)
			}
			if filterOf(t, chain, &httpaskpb.ExtAuthz{}) || filterOf(t, chain, &tcpaskpb.ExtAuthz{}) {
				t.Errorf("%s is asked", name)
			}
		}
	}
	list := policiesOf(t, askAbout)
	list[0].DryRun = true
	m := listenerMesh()
	k := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Bind: "0.0.0.0", Target: 8080, Protocol: value.HTTP,
		Access: accessOf(list)}
	if _, faults := gen.EncodeInboundChains(k); len(faults) != 1 || !decide(t, gen.InboundChains(k)[0],
		asked{method: "GET", port: 8080}) {
		t.Errorf("a policy that is tried only: %v", faults)
	}
}

// TestBadProviders: a provider that says what cannot be done has a problem, and the others of the mesh have none.
func TestBadProviders(t *testing.T) {
	for text, problem := range map[string]string{
		webProvider: "", grpcProvider: "",
		`{name: a, envoyExtAuthzGrpc: {port: 1}}`:                                            "service",
		`{name: a, envoyExtAuthzGrpc: {service: /x, port: 1}}`:                               "service",
		`{name: a, envoyExtAuthzGrpc: {service: x/, port: 1}}`:                               "service",
		`{name: a, envoyExtAuthzGrpc: {service: x}}`:                                         "port",
		`{name: a, envoyExtAuthzGrpc: {service: x, port: 70000}}`:                            "port",
		`{name: a, envoyExtAuthzGrpc: {service: x, port: 1, statusOnError: "999"}}`:          "statusOnError",
		`{name: a, envoyExtAuthzGrpc: {service: x, port: 1, statusOnError: none}}`:           "statusOnError",
		`{name: a, envoyExtAuthzGrpc: {service: x, port: 1, timeout: 0s}}`:                   "timeout",
		`{name: a, envoyExtAuthzHttp: {service: x, port: 1, pathPrefix: check}}`:             "pathPrefix",
		`{name: a, envoyExtAuthzHttp: {service: x, port: 1, includeRequestBodyInCheck: {}}}`: "maxRequestBytes",
	} {
		if got := providerOf(t, text).Problem; !strings.Contains(got, problem) || (got == "") != (problem == "") {
			t.Errorf("%s: problem %q, want %q", text, got, problem)
		}
	}
}
