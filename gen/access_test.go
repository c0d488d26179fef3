package gen_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"

	security "istio.io/api/security/v1beta1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// policiesOf returns AuthorizationPolicies of namespace shop, p0 and on.
func policiesOf(t testing.TB, specs ...string) (out []*value.AuthorizationPolicy) {
	t.Helper()
	for i, text := range specs {
		spec := &security.AuthorizationPolicy{}
		fromYAML(t, text, spec)
		p := istio.Authorization(spec, "shop")
		p.Meta = value.Meta{Namespace: "shop", Name: fmt.Sprint("p", i)}
		out = append(out, p)
	}
	return out
}

// accessOf returns the Key of policies in a mesh with an alias.
func accessOf(policies []*value.AuthorizationPolicy) gen.AccessKey {
	return gen.AccessKey{Policies: value.Policies{Authorization: value.SequenceOf(policies)},
		Settings: &value.AccessSettings{TrustDomains: []string{"cluster.local", "old.domain"}}}
}

// filtersFor returns the chains of a port with policies: for HTTP or for bytes.
func filtersFor(t testing.TB, policies []*value.AuthorizationPolicy, p value.Protocol) *listenerpb.FilterChain {
	t.Helper()
	m := listenerMesh()
	k := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Bind: "0.0.0.0", Target: 8080, Protocol: p,
		Access: accessOf(policies)}
	if _, faults := gen.EncodeInboundChains(k); len(faults) > 0 {
		t.Fatalf("the chains break rules: %v", faults)
	}
	return gen.InboundChains(k)[0]
}

// anyChain returns a chain with policies, of a workload's port or of a gateway.
func anyChain(t testing.TB, policies []*value.AuthorizationPolicy, p value.Protocol,
	gateway bool) *listenerpb.FilterChain {
	if !gateway {
		return filtersFor(t, policies, p)
	}
	m := listenerMesh()
	k := gen.GatewayChainKey{Mesh: m.HTTP, Servers: m.Servers, Access: accessOf(policies),
		TCP: gen.TCPProxyKey{StatPrefix: "db", Upstreams: gen.Upstreams("db")}}
	if p.IsHTTP() {
		k.RouteName = "http.80"
	}
	out := gen.GatewayChain(k)
	if err := out.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	return out
}

// httpManager returns the HTTP connection manager of a chain.
func httpManager(t testing.TB, chain *listenerpb.FilterChain) *hcmpb.HttpConnectionManager {
	t.Helper()
	m := &hcmpb.HttpConnectionManager{}
	if err := chain.GetFilters()[len(chain.GetFilters())-1].GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAccess is a table of policies and what passes: HTTP requests, and connections of bytes.
func TestAccess(t *testing.T) {
	web := asked{principal: "cluster.local/ns/shop/sa/web", source: "10.0.0.1", remote: "192.0.2.1",
		destination: "10.0.0.9", port: 8080, method: "GET", host: "web.example:8080", path: "/api/x",
		headers: map[string]string{"x-user": "bob"},
		claims: map[string]any{"iss": "https://a/b", "sub": "bob", "aud": []any{"w", "v"}, "azp": "p",
			"realm": map[string]any{"roles": []any{"admin"}}}}
	other := func(change func(*asked)) asked {
		a := web
		change(&a)
		return a
	}
	bytes := other(func(a *asked) { a.method, a.host, a.path, a.headers, a.claims = "", "", "", nil, nil })
	for _, c := range []struct {
		policies []string
		request  asked
		want     bool
	}{
		{nil, web, true},
		{[]string{`{}`}, web, false},                          // allows nothing
		{[]string{`{rules: [{}]}`}, web, true},                // allows everything
		{[]string{`{action: DENY, rules: [{}]}`}, web, false}, // denies everything
		{[]string{`{action: AUDIT, rules: [{}]}`}, web, true}, // decides nothing
		{[]string{`{}`, `{rules: [{}]}`}, web, true},          // one allows
		{[]string{`{rules: [{from: [{source: {principals: ["cluster.local/ns/shop/sa/web"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {principals: ["old.domain/ns/shop/sa/web"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {principals: ["cluster.local/ns/shop/sa/web"]}}]}]}`},
			other(func(a *asked) { a.principal = "old.domain/ns/shop/sa/web" }), true},
		{[]string{`{rules: [{from: [{source: {principals: ["cluster.local/ns/shop/sa/web"]}}]}]}`},
			other(func(a *asked) { a.principal = "foreign/ns/shop/sa/web" }), false},
		{[]string{`{rules: [{from: [{source: {principals: ["*/ns/shop/sa/web"]}}]}]}`},
			other(func(a *asked) { a.principal = "foreign/ns/shop/sa/web" }), true},
		{[]string{`{rules: [{from: [{source: {principals: ["*/sa/w.b"]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["https://a/b/b*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["https://a/b/*b*"]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {principals: ["cluster.local/ns/shop/*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {principals: ["*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {principals: ["*"]}}]}]}`},
			other(func(a *asked) { a.principal = "" }), false},
		{[]string{`{rules: [{from: [{source: {notPrincipals: ["*"]}}]}]}`},
			other(func(a *asked) { a.principal = "" }), true},
		{[]string{`{rules: [{from: [{source: {namespaces: [shop]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {namespaces: [sho]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {namespaces: ["s*p"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {notNamespaces: [shop]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {serviceAccounts: [web]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {serviceAccounts: [shop/web]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {serviceAccounts: [shop/we]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {serviceAccounts: [team/web]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {trustDomains: [old.domain]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {trustDomains: ["cluster*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {notTrustDomains: [cluster.local]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {ipBlocks: [10.0.0.0/8]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {ipBlocks: [10.0.0.2]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {remoteIpBlocks: [192.0.2.0/24]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {notRemoteIpBlocks: [192.0.2.0/24]}}]}]}`}, web, false},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["https://a/b/bob"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["https://a/b/*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["https://*"]}}]}]}`},
			web, false}, // no issuer ends in "/"
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["*/bob"]}}]}]}`}, web, true},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["*"]}}]}]}`},
			other(func(a *asked) { a.claims = nil }), false},
		{[]string{`{rules: [{from: [{source: {notRequestPrincipals: ["*"]}}]}]}`},
			other(func(a *asked) { a.claims = nil }), true},
		{[]string{`{rules: [{to: [{operation: {methods: [GET, PUT]}}]}]}`}, web, true},
		{[]string{`{rules: [{to: [{operation: {notMethods: [GET]}}]}]}`}, web, false},
		{[]string{`{rules: [{to: [{operation: {hosts: ["WEB.example:*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{to: [{operation: {notHosts: ["Web.Example:8080"]}}]}]}`}, web, false},
		{[]string{`{rules: [{to: [{operation: {paths: ["/api/*"]}}]}]}`}, web, true},
		{[]string{`{rules: [{to: [{operation: {paths: ["/api/{*}"]}}]}]}`}, web, true},
		{[]string{`{rules: [{to: [{operation: {paths: ["/{**}"]}}]}]}`}, web, true},
		{[]string{`{rules: [{to: [{operation: {paths: ["/{*}"]}}]}]}`}, web, false},
		{[]string{`{rules: [{to: [{operation: {notPaths: ["*x"]}}]}]}`}, web, false},
		{[]string{`{rules: [{to: [{operation: {ports: ["8080"]}}]}]}`}, web, true},
		{[]string{`{rules: [{to: [{operation: {notPorts: ["8080"]}}]}]}`}, web, false},
		{[]string{`{rules: [{to: [{operation: {methods: [PUT]}}, {operation: {paths: [/api/x]}}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: "request.headers[x-user]", values: ["b*"]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: "request.headers[x-user]", notValues: [bob]}]}]}`}, web, false},
		{[]string{`{rules: [{when: [{key: source.ip, values: [10.0.0.1]}, {key: destination.ip, values: [10.0.0.0/28]}]}]}`},
			web, true},
		{[]string{`{rules: [{when: [{key: remote.ip, notValues: [192.0.2.1]}]}]}`}, web, false},
		{[]string{`{rules: [{when: [{key: source.namespace, values: [shop]}, {key: destination.port, values: ["8080"]}]}]}`},
			web, true},
		{[]string{`{rules: [{when: [{key: source.principal, values: ["*/sa/web"]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: source.serviceAccount, values: [web]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: request.auth.principal, values: ["https://a/b/bob"]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: request.auth.audiences, values: [v]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: request.auth.presenter, values: [p]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: "request.auth.claims[realm][roles]", values: [admin]}]}]}`}, web, true},
		{[]string{`{rules: [{when: [{key: "request.auth.claims[realm][roles]", notValues: [admin]}]}]}`}, web, false},
		{[]string{`{rules: [{when: [{key: connection.sni, values: ["*.example"]}]}]}`}, web, false},
		{[]string{`{rules: [{when: [{key: connection.sni, values: ["*.example"]}]}]}`},
			other(func(a *asked) { a.sni = "a.example" }), true},
		// Connections of bytes: what asks for requests never allows, and never denies less.
		{[]string{`{rules: [{to: [{operation: {methods: [GET]}}]}]}`}, bytes, false},
		{[]string{`{rules: [{to: [{operation: {ports: ["8080"]}}, {operation: {methods: [GET]}}]}]}`}, bytes, false},
		{[]string{`{rules: [{to: [{operation: {ports: ["8080"]}}]}, {to: [{operation: {methods: [GET]}}]}]}`},
			bytes, true},
		{[]string{`{rules: [{when: [{key: "request.headers[x]", notValues: [z]}]}]}`}, bytes, false},
		{[]string{`{action: DENY, rules: [{to: [{operation: {methods: [GET]}}]}]}`}, bytes, false},
		{[]string{`{action: DENY, rules: [{to: [{operation: {methods: [GET], ports: ["9"]}}]}]}`}, bytes, true},
		{[]string{`{action: DENY, rules: [{from: [{source: {notRequestPrincipals: ["*"], namespaces: [x]}}]}]}`},
			bytes, true},
		{[]string{`{action: DENY, rules: [{from: [{source: {notRequestPrincipals: ["*"]}}]}]}`}, bytes, false},
	} {
		protocol := value.HTTP
		if c.request.method == "" {
			protocol = value.TCP
		}
		if got := decide(t, filtersFor(t, policiesOf(t, c.policies...), protocol), c.request); got != c.want {
			t.Errorf("%v lets %+v pass: %v", c.policies, c.request, got)
		}
	}
}

// TestPrincipalsOfAliases: each principal that names the mesh stands for itself in all trust domains, in their order,
// also where others stand for the same; others stay as they are.
func TestPrincipalsOfAliases(t *testing.T) {
	for list, want := range map[string]string{
		`"cluster.local/ns/a/sa/b"`: "cluster.local/ns/a/sa/b old.domain/ns/a/sa/b",
		`"old.domain/ns/a/sa/b", "cluster.local/ns/a/sa/b"`: "cluster.local/ns/a/sa/b old.domain/ns/a/sa/b " +
			"cluster.local/ns/a/sa/b old.domain/ns/a/sa/b",
		`"foreign/ns/a/sa/b"`:     "foreign/ns/a/sa/b",
		`"cluster.local/ns/a/sa"`: "cluster.local/ns/a/sa",
		`"cluster*/ns/a/sa/b"`:    "cluster.local/ns/a/sa/b old.domain/ns/a/sa/b",
	} {
		chain := filtersFor(t, policiesOf(t, `{rules: [{from: [{source: {principals: [`+list+`]}}]}]}`), value.TCP)
		m := &tcprbacpb.RBAC{}
		for _, f := range chain.GetFilters() {
			if f.GetTypedConfig().MessageIs(m) {
				if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []string
		ids := m.GetRules().GetPolicies()["ns[shop]-policy[p0]-rule[0]"].GetPrincipals()[0].GetAndIds().GetIds()
		for _, p := range ids[0].GetOrIds().GetIds() {
			got = append(got, strings.TrimPrefix(p.GetAuthenticated().GetPrincipalName().GetExact(), "spiffe://"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s becomes %q, want %q", list, got, want)
		}
	}
}

// TestTrustDomainsAreComparedAsText: a trust domain without a wildcard needs no regular expression, so that a proxy
// which takes only small ones takes one of any length.
func TestTrustDomainsAreComparedAsText(t *testing.T) {
	long := strings.Repeat("d", 200)
	for domain, want := range map[string]string{
		"foreign.local": `prefix:"spiffe://foreign.local/"`, long: `prefix:"spiffe://` + long + `/"`,
		"f*": `safe_regex:{regex:"spiffe://f[^/]*/.*"}`, "*": `safe_regex:{regex:"spiffe://[^/]+/.*"}`,
	} {
		k := accessOf(policiesOf(t, `{rules: [{from: [{source: {trustDomains: ["`+domain+`"]}}]}]}`))
		k.RegexSize = 100
		m := listenerMesh()
		chains := gen.InboundChains(gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Bind: "0.0.0.0", Target: 8080,
			Protocol: value.HTTP, Access: k})
		if faults := k.Faults(); len(faults) > 0 {
			t.Errorf("%q: %v", domain, faults)
		}
		text := strings.ReplaceAll(httpManager(t, chains[0]).String(), " ", "")
		if b := gen.Marshal(chains[0]); !bytes.Contains(b, []byte(strings.Split(want, `"`)[1])) {
			t.Errorf("%q is not compared with %s in %s", domain, want, text)
		}
	}
}

// TestDryRunDecidesNothing: policies that are tried are shadow rules, with a prefix that tells what they would do.
func TestDryRunDecidesNothing(t *testing.T) {
	list := policiesOf(t, `{action: DENY, rules: [{}]}`, `{action: DENY, rules: [{to: [{operation: {ports: ["9"]}}]}]}`)
	list[0].DryRun = true
	for _, p := range []value.Protocol{value.HTTP, value.TCP} {
		chain := filtersFor(t, list, p)
		a := asked{port: 8080}
		if p == value.HTTP {
			a.method = "GET"
		}
		if !decide(t, chain, a) {
			t.Error("a policy that is tried denies")
		}
		if b := gen.Marshal(chain); !bytes.Contains(b, []byte("istio_dry_run_deny_")) {
			t.Error("what is tried is not noted")
		}
	}
}

// TestPolicyThatTheProxyRefuses: where a proxy would not take an expression that comes of a policy, the policy allows
// nothing or denies everything, is told of, and leaves the others alone. A namespace needs no expression.
func TestPolicyThatTheProxyRefuses(t *testing.T) {
	long := strings.Repeat("n", 120)
	for spec, want := range map[string]struct{ passes, told bool }{
		`{rules: [{from: [{source: {principals: ["*/sa/` + long + `"]}}]}]}`:                {false, true},
		`{action: DENY, rules: [{from: [{source: {principals: ["*/sa/` + long + `"]}}]}]}`:  {false, true},
		`{action: AUDIT, rules: [{from: [{source: {principals: ["*/sa/` + long + `"]}}]}]}`: {true, true},
		`{rules: [{from: [{source: {notNamespaces: [` + long + `]}}]}]}`:                    {true, false},
	} {
		m := listenerMesh()
		k := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Bind: "0.0.0.0", Target: 8080, Protocol: value.HTTP,
			Access: accessOf(policiesOf(t, spec))}
		k.Access.RegexSize = 100
		b, faults := gen.EncodeInboundChains(k)
		if len(b) == 0 || (len(faults) > 0) != want.told {
			t.Errorf("%s: %d bytes, %v", spec, len(b), faults)
		}
		for _, f := range faults {
			if len(f.Of) != 1 || f.Of[0].Kind != value.KindAuthorizationPolicy {
				t.Errorf("%s is told of %v", spec, f.Of)
			}
		}
		a := asked{method: "GET", principal: "cluster.local/ns/a/sa/b"}
		if got := decide(t, gen.InboundChains(k)[0], a); got != want.passes {
			t.Errorf("%s: passes: %v", spec, got)
		}
	}
}

func randomPolicy(t *rapid.T) string {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	list := func(name string, of ...string) string {
		return fmt.Sprintf("%s: [%q]", pick("not", name, "not"+strings.ToUpper(name[:1])+name[1:]), pick(name, of...))
	}
	source := func() string {
		return pick("source", list("principals", "*", "cluster.local/ns/a/sa/b", "*/ns/b/sa/b"),
			list("namespaces", "a", "b", "*"), list("ipBlocks", "10.0.0.0/31", "10.0.0.1"),
			list("requestPrincipals", "*", "i/s", "i/*"))
	}
	operation := func() string {
		return pick("operation", list("methods", "GET", "PUT"), list("paths", "/a", "/a*", "*b", "/{*}"),
			list("ports", "80", "81"), list("hosts", "h", "*x"))
	}
	when := func() string {
		return fmt.Sprintf("{key: %q, %s}", pick("key", "request.headers[x]", "source.namespace", "request.auth.claims[c]"),
			list("values", "a", "b*", "*"))
	}
	rule := func() string {
		var parts []string
		if rapid.Bool().Draw(t, "from") {
			parts = append(parts, fmt.Sprintf("from: [{source: {%s}}, {source: {%s}}]", source(), source()))
		}
		if rapid.Bool().Draw(t, "to") {
			parts = append(parts, fmt.Sprintf("to: [{operation: {%s}}]", operation()))
		}
		if rapid.Bool().Draw(t, "when") {
			parts = append(parts, fmt.Sprintf("when: [%s]", when()))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprintf("{action: %s, rules: [%s, %s]}", pick("action", "ALLOW", "DENY", "AUDIT"), rule(), rule())
}

func randomRequest(t *rapid.T) asked {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	a := asked{principal: pick("principal", "", "cluster.local/ns/a/sa/b", "old.domain/ns/b/sa/b", "x/ns/c/sa/d"),
		source: pick("source", "10.0.0.0", "10.0.0.1", "10.0.0.2"), remote: "192.0.2.1", destination: "10.0.0.9",
		port: rapid.SampledFrom([]uint32{80, 81}).Draw(t, "port")}
	if rapid.Bool().Draw(t, "http") {
		a.method, a.host = pick("method", "GET", "PUT"), pick("host", "h", "H", "ax")
		a.path = pick("path", "/a", "/ab", "/c", "/a/b")
		a.headers = map[string]string{pick("header", "x", "y"): pick("value", "a", "bc", "")}
		a.claims = map[string]any{"iss": pick("iss", "i", "j"), "sub": "s", "c": []any{"a"}}
	}
	return a
}

// TestDenyNeverAllowsMore: at workloads and gateways, for requests and connections, a policy more that denies lets
// nothing pass that did not pass, and a policy less that allows neither, unless it was the last one: without any,
// nothing needs to be allowed.
func TestDenyNeverAllowsMore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var specs []string
		for range rapid.IntRange(1, 4).Draw(rt, "policies") {
			specs = append(specs, randomPolicy(rt))
		}
		list, a := policiesOf(t, specs...), randomRequest(rt)
		protocol := value.HTTP
		if a.method == "" {
			protocol = value.TCP
		}
		gateway := rapid.Bool().Draw(rt, "gateway")
		before := decide(t, anyChain(t, list, protocol, gateway), a)
		i := rapid.IntRange(0, len(list)-1).Draw(rt, "without")
		without := append(append([]*value.AuthorizationPolicy{}, list[:i]...), list[i+1:]...)
		after := decide(t, anyChain(t, without, protocol, gateway), a)
		switch allowing := 0; list[i].Action {
		case value.DenyAction:
			if before && !after {
				rt.Fatalf("%s lets %+v pass", specs[i], a)
			}
		case value.AuditAction:
			if before != after {
				rt.Fatalf("%s decides over %+v", specs[i], a)
			}
		default:
			for _, p := range without {
				if p.Action == value.AllowAction {
					allowing++
				}
			}
			if allowing > 0 && after && !before {
				rt.Fatalf("without %s %+v passes", specs[i], a)
			}
		}
	})
}

// TestBytesAreNoLooser: what is known of requests counts for nothing in chains of bytes, and that never lets a
// connection pass whose requests would all be refused.
func TestBytesAreNoLooser(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list, a := policiesOf(t, randomPolicy(rt), randomPolicy(rt)), randomRequest(rt)
		if a.method == "" {
			a.method, a.path, a.host = "GET", "/a", "h"
		}
		bytes, gateway := a, rapid.Bool().Draw(rt, "gateway")
		bytes.method = ""
		if decide(t, anyChain(t, list, value.TCP, gateway), bytes) && !decide(t, anyChain(t, list, value.HTTP, gateway), a) {
			rt.Fatalf("%+v is refused as a request and passes as bytes", a)
		}
	})
}

// TestPoliciesAreEncodedTheSame: maps of rules have one order.
func TestPoliciesAreEncodedTheSame(t *testing.T) {
	list := policiesOf(t, `{rules: [{}, {}, {}]}`, `{rules: [{}, {}, {}]}`)
	first := gen.Marshal(filtersFor(t, list, value.HTTP))
	for range 50 {
		if !bytes.Equal(first, gen.Marshal(filtersFor(t, list, value.HTTP))) {
			t.Fatal("the encoding varies")
		}
	}
}
