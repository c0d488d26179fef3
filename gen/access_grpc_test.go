package gen_test

import (
	"testing"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestPoliciesOfServers: a gRPC server without a proxy decides as a proxy does where it can be asked; what it cannot be
// asked for never allows, and never keeps from denying. No two of its filters have one name.
func TestPoliciesOfServers(t *testing.T) {
	web := asked{method: "POST", principal: "cluster.local/ns/shop/sa/web", host: "h", path: "/s/m", port: 8080,
		source: "10.0.0.1", headers: map[string]string{"x": "1"}}
	for _, c := range []struct {
		policies []string
		want     bool
	}{
		{nil, true},
		{[]string{`{rules: [{from: [{source: {namespaces: [shop]}}], to: [{operation: {paths: ["/s/*"]}}]}]}`}, true},
		{[]string{`{rules: [{to: [{operation: {paths: [/other]}}]}]}`}, false},
		{[]string{`{}`}, false},
		{[]string{`{rules: [{}]}`, `{action: DENY, rules: [{to: [{operation: {paths: [/s/m]}}]}]}`}, false},
		{[]string{`{rules: [{}]}`, `{action: DENY, rules: [{to: [{operation: {paths: [/other]}}]}]}`}, true},
		{[]string{`{rules: [{from: [{source: {requestPrincipals: ["*"]}}]}]}`}, false},
		{[]string{`{rules: [{from: [{source: {notRequestPrincipals: ["*"]}}]}]}`}, false},
		{[]string{`{rules: [{to: [{operation: {paths: ["/s/{*}"]}}]}]}`}, false},
		{[]string{`{rules: [{when: [{key: connection.sni, values: [a]}]}]}`}, false},
		{[]string{`{rules: [{when: [{key: "request.headers[grpc-x]", notValues: [a]}]}]}`}, false},
		{[]string{`{rules: [{when: [{key: "request.headers[x]", values: ["1"]}]}]}`}, true},
		{[]string{`{action: DENY, rules: [{from: [{source: {requestPrincipals: [nobody]}}]}]}`}, false},
		{[]string{`{action: DENY, rules: [{to: [{operation: {paths: ["/x/{*}"]}}]}]}`}, false},
		{[]string{`{action: AUDIT, rules: [{}]}`}, true},
		{[]string{`{action: CUSTOM, provider: {name: x}, rules: [{to: [{operation: {paths: [/s/m]}}]}]}`}, false},
		{[]string{`{action: CUSTOM, provider: {name: x}, rules: [{to: [{operation: {paths: [/other]}}]}]}`}, true},
	} {
		k := gen.ServerListenerKey{Address: "0.0.0.0", Port: 8080, Access: accessOf(policiesOf(t, c.policies...))}
		k.Access.GRPC = true
		if b, _ := gen.EncodeServerListener(k); len(b) == 0 {
			t.Fatalf("%v: nothing is made", c.policies)
		}
		chain, names := gen.ServerListener(k).GetFilterChains()[0], map[string]bool{}
		if got := decide(t, chain, web); got != c.want {
			t.Errorf("%v: passes: %v", c.policies, got)
		}
		for _, f := range httpManager(t, chain).GetHttpFilters() {
			if names[f.GetName()] {
				t.Errorf("%v: two filters are called %s", c.policies, f.GetName())
			}
			names[f.GetName()] = true
		}
	}
	list := policiesOf(t, `{action: DENY, rules: [{}]}`)
	list[0].DryRun = true
	k := gen.ServerListenerKey{Address: "0.0.0.0", Port: 8080, Access: accessOf(list)}
	if k.Access.GRPC = true; !decide(t, gen.ServerListener(k).GetFilterChains()[0], web) {
		t.Error("a policy that is tried only denies")
	}
	k.Access = accessOf(policiesOf(t, `{action: CUSTOM, provider: {name: x}, rules: [{}]}`))
	k.Access.GRPC = true
	if _, faults := gen.EncodeServerListener(k); len(faults) != 1 ||
		faults[0].Of[0].Kind != value.KindAuthorizationPolicy {
		t.Errorf("nobody is told that no provider is asked: %v", faults)
	}
}
