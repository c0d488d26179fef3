package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestAuthorizationPolicyVerdicts: what istiod's webhook and CRD refuse is refused, with the field; so is what Envoy
// would refuse.
func TestAuthorizationPolicyVerdicts(t *testing.T) {
	rule := func(s string) string { return "{rules: [{" + s + "}]}" }
	to := func(s string) string { return rule("to: [{operation: {" + s + "}}]") }
	custom := func(s string) string { return "{action: CUSTOM, provider: {name: x}, rules: [{" + s + "}]}" }
	from := func(s string) string { return rule("from: [{source: {" + s + "}}]") }
	when := func(key, values string) string { return rule(fmt.Sprintf("when: [{key: %q, %s}]", key, values)) }
	for spec, field := range map[string]string{
		`{}`: "", `{rules: [{}]}`: "", `{action: AUDIT}`: "", `{selector: {matchLabels: {app: web}}}`: "",
		`{action: DENY}`:                "spec.rules",
		`{action: 7}`:                   "spec.action",
		`{action: CUSTOM, rules: [{}]}`: "spec.provider.name",
		`{action: CUSTOM, provider: {name: x}, rules: [{}]}`:                                                              "",
		`{action: CUSTOM, provider: {name: x}}`:                                                                           "spec.rules",
		`{provider: {name: x}, rules: [{}]}`:                                                                              "spec.provider",
		`{selector: {}, targetRefs: [{kind: Gateway, name: g}]}`:                                                          "spec.targetRefs",
		`{targetRefs: [{kind: Gateway, name: g, group: gateway.networking.k8s.io, namespace: b}]}`:                        "spec.targetRefs[0].namespace",
		`{targetRefs: [{kind: Gateway, name: g, group: gateway.networking.k8s.io}, {kind: Service, name: s, group: ""}]}`: "",
		`{targetRef: {kind: ServiceEntry, name: g, group: networking.istio.io}}`:                                          "",
		`{targetRefs: [{kind: Deployment, name: g, group: apps}]}`:                                                        "spec.targetRefs[0].kind",
		`{targetRefs: [{kind: gateway, name: g, group: gateway.networking.k8s.io}]}`:                                      "spec.targetRefs[0].kind",
		`{targetRefs: [{kind: Gateway, name: g, group: networking.istio.io}]}`:                                            "spec.targetRefs[0].kind",
		`{targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io}]}`:                                               "spec.targetRefs[0].name",
		`{selector: {matchLabels: {app: "w*"}}}`:                                                                          "spec.selector.matchLabels.app",
		rule("from: []"):                                                                                                  "",
		rule("from: [{}]"):                                                                                                "spec.rules[0].from[0].source",
		rule("to: [{operation: {}}]"):                                                                                     "spec.rules[0].to[0].operation",
		from(`principals: [""]`):                                                                                          "spec.rules[0].from[0].source.principals[0]",
		from(`ipBlocks: [10.0.0.0/33]`):                                                                                   "spec.rules[0].from[0].source.ipBlocks[0]",
		from(`notRemoteIpBlocks: [x]`):                                                                                    "spec.rules[0].from[0].source.notRemoteIpBlocks[0]",
		from(`serviceAccounts: [a], namespaces: [b]`):                                                                     "spec.rules[0].from[0].source.serviceAccounts",
		from(`serviceAccounts: [a/b/c]`):                                                                                  "spec.rules[0].from[0].source.serviceAccounts[0]",
		from(`serviceAccounts: ["a/*"]`):                                                                                  "spec.rules[0].from[0].source.serviceAccounts[0]",
		from(`namespaces: [` + strings.Repeat("a", 2000) + `]`):                                                           "spec.rules[0].from[0].source.namespaces[0]",
		to(`ports: ["70000"]`):                                                                                            "spec.rules[0].to[0].operation.ports[0]",
		to(`ports: [http]`):                                                                                               "spec.rules[0].to[0].operation.ports[0]",
		to(`paths: ["/a/{*}/b", "/{**}", "/a/{**}/", "/x"]`):                                                              "",
		to(`paths: ["/{**}/a/{*}"]`):                                                                                      "spec.rules[0].to[0].operation.paths[0]",
		to(`paths: ["/{*}.txt"]`):                                                                                         "spec.rules[0].to[0].operation.paths[0]",
		to(`paths: ["/*/{*}"]`):                                                                                           "spec.rules[0].to[0].operation.paths[0]",
		to(`paths: ["/a//{*}"]`):                                                                                          "spec.rules[0].to[0].operation.paths[0]",
		to(`paths: ["a/{*}"]`):                                                                                            "spec.rules[0].to[0].operation.paths[0]",
		to(`paths: ["/a/{id}"]`):                                                                                          "spec.rules[0].to[0].operation.paths[0]",
		to(`notPaths: ["/a}"]`):                                                                                           "spec.rules[0].to[0].operation.notPaths[0]",
		to(`notPaths: ["/{a}/{*}"]`):                                                                                      "spec.rules[0].to[0].operation.notPaths[0]",
		custom(`from: [{source: {principals: [a], notNamespaces: [b]}}]`):                                                 "",
		custom(`from: [{source: {requestPrincipals: ["*"]}}]`):                                                            "spec.rules[0].from[0].source.requestPrincipals",
		custom(`from: [{source: {ipBlocks: [10.0.0.1], notRequestPrincipals: [i/s]}}]`):                                   "spec.rules[0].from[0].source.notRequestPrincipals",
		custom(`when: [{key: source.ip, values: [10.0.0.1]}, {key: "request.auth.claims[a]", values: [b]}]`): "spec.rules[0].when[1].key",
		when("source.ip", "values: [10.0.0.1]"):                                 "",
		when("source.ip", "values: [x]"):                                        "spec.rules[0].when[0].values[0]",
		when("source.ip", ""):                                                   "spec.rules[0].when[0].values",
		when("destination.port", "notValues: [x]"):                              "spec.rules[0].when[0].notValues[0]",
		when("unknown", "values: [x]"):                                          "spec.rules[0].when[0].key",
		when("request.headers", "values: [x]"):                                  "spec.rules[0].when[0].key",
		when("request.headers[]", "values: [x]"):                                "spec.rules[0].when[0].key",
		when("request.headers[a b]", "values: [x]"):                             "spec.rules[0].when[0].key",
		when("request.headers[x-a]", "values: [x]"):                             "",
		when("request.headers[x_a.b!]", "values: [x]"):                          "",
		when("request.headers[:method]", "values: [x]"):                         "",
		when("request.headers[:status]", "values: [x]"):                         "spec.rules[0].when[0].key",
		when("request.headers[a:b]", "values: [x]"):                             "spec.rules[0].when[0].key",
		when("request.auth.claims[a][b]", "values: [x]"):                        "",
		when("request.auth.claims[a][]", "values: [x]"):                         "spec.rules[0].when[0].key",
		when("request.auth.claims[a]b", "values: [x]"):                          "spec.rules[0].when[0].key",
		when("experimental.envoy.filters.network.mysql_proxy", `values: ["u"]`): "spec.rules[0].when[0].key",
		when("connection.sni", `values: ["*.x"]`):                               "",
	} {
		s := NewStore(newKeeper(), quiet(t), "kube")
		s.Synced("kube")
		s.Apply(decode(t, "kube", "kind: AuthorizationPolicy\nmetadata: {name: x, namespace: a}\nspec: "+spec))
		got := ""
		if r := s.Rejections(); len(r) > 0 {
			got = r[0].Field
		}
		if got != field {
			t.Errorf("%s is refused for %q, want %q", spec, got, field)
		}
	}
}

// TestDryRunVerdicts: only policies that allow or deny can be tried, as istiod's webhook has it, and one that is
// refused enforces nothing if it was to be tried.
func TestDryRunVerdicts(t *testing.T) {
	const field = "metadata.annotations.istio.io/dry-run"
	for _, c := range []struct{ kind, tried, spec, want string }{
		{"AuthorizationPolicy", "true", "{}", ""}, {"AuthorizationPolicy", "false", "{action: DENY, rules: [{}]}", ""},
		{"AuthorizationPolicy", "maybe", "{}", field}, {"AuthorizationPolicy", "true", "{action: AUDIT}", field},
		{"AuthorizationPolicy", "true", "{action: CUSTOM, provider: {name: x}, rules: [{}]}", field},
		{"AuthorizationPolicy", "true", "{action: DENY}", "spec.rules"},
		{"RequestAuthentication", "true", "{}", field}, {"PeerAuthentication", "false", "{}", field},
		{"VirtualService", "true", "{hosts: [a], http: [{route: [{destination: {host: b}}]}]}", field},
	} {
		k := newKeeper()
		s := NewStore(k, quiet(t), "kube")
		s.Synced("kube")
		s.Apply(decode(t, "kube", "kind: "+c.kind+"\nmetadata: {name: x, namespace: a, annotations: {istio.io/dry-run: '"+
			c.tried+"'}}\nspec: "+c.spec))
		got := ""
		if r := s.Rejections(); len(r) > 0 {
			got = r[0].Field
		}
		if got != c.want {
			t.Errorf("%s %s, tried: %s, is refused for %q, want %q", c.kind, c.spec, c.tried, got, c.want)
		}
		there := k.state.objects[value.ObjectKey{Kind: value.KindAuthorizationPolicy, Namespace: "a", Name: "x"}] != nil
		if there && c.want != "" && c.tried == "true" {
			t.Errorf("%s %s, tried: %s, is refused and enforces something", c.kind, c.spec, c.tried)
		}
	}
}

// TestRefusedPolicyFailsClosed: a policy that is refused and has no earlier version refuses at least what it may mean
// to refuse, for those whom it selects; an earlier version stays in force, and a good one takes its place.
func TestRefusedPolicyFailsClosed(t *testing.T) {
	const text = "kind: AuthorizationPolicy\nmetadata: {name: x, namespace: a}\nspec: "
	const bad = "rules: [{when: [{key: nonsense, values: [x]}]}]}"
	for _, c := range []struct{ before, spec, want string }{
		{"", "{selector: {matchLabels: {app: web}}, " + bad, "{app=web} allows by 0 rules"},
		{"", "{action: DENY, selector: {matchLabels: {app: web}}, " + bad, "{app=web} denies by 1 rules"},
		{"", "{action: CUSTOM, provider: {name: x}, " + bad, "{} denies by 1 rules"},
		{"", "{action: AUDIT, " + bad, "none"},
		{"", "{action: DENY, selector: {matchLabels: {app: 'w*'}}, rules: [{}]}", "{} denies by 1 rules"},
		{"{action: AUDIT, rules: [{}, {}]}", "{action: DENY, " + bad, "{} audits by 2 rules"},
	} {
		k := newKeeper()
		s := NewStore(k, quiet(t), "kube")
		s.Synced("kube")
		if c.before != "" {
			s.Apply(decode(t, "kube", text+c.before))
		}
		s.Apply(decode(t, "kube", text+c.spec))
		shown := func() string {
			key := value.ObjectKey{Kind: value.KindAuthorizationPolicy, Namespace: "a", Name: "x"}
			p, _ := k.state.objects[key].(*value.AuthorizationPolicy)
			if p == nil {
				return "none"
			}
			return fmt.Sprintf("%s %s by %d rules", showLabels(p.Labels),
				[]string{"allows", "denies", "audits", "asks"}[p.Action], len(p.Rules))
		}
		if got := shown(); got != c.want {
			t.Errorf("%q, then %s: %s, want %s", c.before, c.spec, got, c.want)
		}
		if len(s.Rejections()) != 1 {
			t.Errorf("%s: %d rejections", c.spec, len(s.Rejections()))
		}
		s.Apply(decode(t, "kube", text+"{rules: [{}, {}, {}]}"))
		if got := shown(); got != "{} allows by 3 rules" || len(s.Rejections()) != 0 {
			t.Errorf("a good version after %s: %s, %d rejections", c.spec, got, len(s.Rejections()))
		}
	}
}
