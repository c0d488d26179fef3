package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// edgeForms are policies of a gateway, for the workload by its labels ("edge") or for the Gateway of the Gateway API
// that it stands for ("named"). One proxy before it is trusted.
func edgeForms() []policyForm {
	const trusted, other = "{x-forwarded-for: 203.0.113.7}", "{x-forwarded-for: 198.51.100.7}"
	const behind, faked = "{x-forwarded-for: 198.51.100.7 203.0.113.7}", "{x-forwarded-for: 203.0.113.7 198.51.100.7}"
	forms := []policyForm{
		{false, "ALLOW edge: " + from(`remoteIpBlocks: [203.0.113.0/24]`), "no /a; yes /a %1; no /a %2; yes /a %3; no /a %4"},
		{true, "DENY edge: " + from(`remoteIpBlocks: [203.0.113.0/24]`), "yes /a; no /a %1; yes /a %2; no /a %3; yes /a %4"},
		{true, "DENY named: " + from(`notRemoteIpBlocks: [203.0.113.7]`), "no /a; yes /a %1; no /a %2; yes /a %3; no /a %4"},
		{false, "ALLOW named: " + when("remote.ip", `notValues: [203.0.113.7]`), "yes /a; no /a %1; yes /a %2"},
		{false, "ALLOW edge: " + from(`ipBlocks: [10.244.9.0/24]`), "yes /a; yes /a %1; yes /a %2"},
		{true, "DENY edge: " + from(`ipBlocks: [203.0.113.0/24]`), "yes /a; yes /a %1"},
		{true, "DENY edge: " + when("source.ip", `notValues: [10.244.9.0/24]`), "yes /a; yes /a %1"},
		{false, "ALLOW named: " + to(`paths: ["P/a"]`), "yes /a; no /b; yes /b/../a; yes /%61; no //a"},
		{true, "DENY named: " + to(`paths: ["P/a"]`), "no /a; yes /b; no /b/../a; no /%61; yes //a"},
		{true, "DENY edge: " + below(`methods: [POST]`) + " | DENY named: " + below(`methods: [PUT]`), "yes /a; no POST /a; no PUT /a"},
		{false, "ALLOW edge: " + below(`methods: [POST]`) + " | ALLOW named: " + below(`methods: [PUT]`), "no /a; yes POST /a; yes PUT /a"},
		{false, "ALLOW edge: " + below(`hosts: ["SHOP.example.com"]`), "no /a; yes /a {host: shop.example.com}"},
		{true, "DENY edge: " + below(`notHosts: ["web.*"]`), "yes /a; no /a {host: shop.example.com}"},
		{false, "ALLOW edge: " + below(`ports: ["8080"]`), "yes /a"},
		{false, "ALLOW edge: " + below(`ports: ["80"]`), "no /a"},
		{false, "ALLOW edge: " + from(`principals: ["*"]`), "no /a"},
		{true, "DENY edge: " + from(`notPrincipals: ["*"]`), "no /a"},
		{false, "ALLOW edge: " + from(`notNamespaces: [shop]`), "yes /a"},
		{false, "ALLOW edge: " + when("connection.sni", `values: ["*"]`), "no /a"},
		{false, "ALLOW edge: " + when("destination.ip", `values: [10.244.3.1]`), "yes /a"},
		{false, "ALLOW edge: " + from(`requestPrincipals: ["https://issuer/bob"]`), "no /a; yes /a %t; no /a %u"},
		{true, "DENY named: " + from(`notRequestPrincipals: ["*"]`), "no /a; yes /a %t; yes /a %u"},
		{false, "ALLOW named: " + when("request.auth.claims[realm][role]", `values: [admin]`), "no /a; yes /a %t; no /a %u"},
		{false, "AUDIT edge: " + to(`paths: ["P/*"]`), "no /a"},
		{true, "DENY edge dry: " + to(`paths: ["P/*"]`), "yes /a"},
		{false, "ALLOW named dry: " + to(`paths: ["P/*"]`), "no /a"},
	}
	words := strings.NewReplacer("%1", trusted, "%2", other, "%3", behind, "%4", faked,
		"%t", "{authorization: Bearer <T1>}", "%u", "{x-second: <T2>}")
	for i := range forms {
		forms[i].asks = words.Replace(forms[i].asks)
	}
	return forms
}

// claimRow is what a route asks of claims, and whether it is taken by a request without a token, with T1, and with T2.
type claimRow struct {
	match          string
	none, one, two bool
}

func claimRows() []claimRow {
	claim := func(name, match string) string {
		return fmt.Sprintf(`headers: {"@request.auth.claims%s": {%s}}`, name, match)
	}
	without := func(name, match string) string {
		return fmt.Sprintf(`withoutHeaders: {"@request.auth.claims%s": {%s}}`, name, match)
	}
	return []claimRow{
		{claim(".sub", "exact: bob"), false, true, false},
		{claim("[sub]", "exact: bob"), false, true, false},
		{claim(".sub", "prefix: e"), false, false, true},
		{claim(".sub", `regex: "(bob|eve)"`), false, true, true},
		{claim(".sub", "exact: bo"), false, false, false},
		{claim(".groups", "exact: admin"), false, true, false},
		{claim("[groups]", "prefix: us"), false, true, false},
		{claim(".groups", `regex: "ad.*"`), false, true, false},
		{claim(".groups", "exact: nobody"), false, false, false},
		{claim(".realm.role", "exact: admin"), false, true, false},
		{claim("[realm][role]", "prefix: ad"), false, true, false},
		{claim("[dotted.name]", `exact: "yes"`), false, true, false},
		{claim(".dotted.name", `exact: "yes"`), false, false, false},
		{claim(".scope", "exact: read"), false, true, false},
		{claim(".iss", `exact: "https://second"`), false, false, true},
		{claim(".aud", "exact: web"), false, true, false},
		{claim(".number", `exact: "7"`), false, false, false},
		{without(".groups", "exact: admin"), true, false, true},
		{without("[realm][role]", "prefix: ad"), true, false, true},
		{claim(".sub", `regex: ".+"`) + ", " + without(".groups", "exact: admin"), false, false, true},
		{`headers: {"@request.auth.claims.sub": {exact: bob}, "@request.auth.claims.groups": {exact: users}}`, false, true,
			false},
		{`headers: {"@request.auth.claims.sub": {exact: bob}, "@request.auth.claims.groups": {exact: none}}`, false, false,
			false},
		{`headers: {"@request.auth.claims.sub": {exact: bob}, x-more: {exact: v}}`, false, false, false},
	}
}

// claimRoutes leads requests with the claims of a row to v1, and all others to v2.
func claimRoutes(rows []claimRow) string {
	var out strings.Builder
	out.WriteString(`
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: claims, namespace: shop}
spec:
  hosts: ["*.example.com"]
  gateways: [istio-system/front]
  http:
`)
	for i, r := range rows {
		fmt.Fprintf(&out, "  - {match: [{uri: {prefix: /c%d/}, %s}], "+
			"route: [{destination: {host: %s, subset: v1, port: {number: 80}}}]}\n", i, r.match, webHost)
	}
	fmt.Fprintf(&out, "  - {route: [{destination: {host: %s, subset: v2, port: {number: 80}}}]}\n", webHost)
	return out.String()
}

// TestPoliciesOfGateways runs edgeForms, claimRows and tokens from everywhere through the Envoy of a gateway.
func TestPoliciesOfGateways(t *testing.T) {
	w := &world{t: t, network: testnet.New(t), secrets: parts.NewAuthority(t), objects: inDirectory(t)}
	first, second := newIssuer(t), newIssuer(t)
	forms, claims, at := edgeForms(), claimRows(), gatewayDelta()
	at.labels += ", gateway.networking.k8s.io/gateway-name: named"
	var policies strings.Builder
	for i, f := range forms {
		policies.WriteString(f.yaml(i))
	}
	w.objects.Apply(baseMesh() + at.yaml() + claimRoutes(claims) + policies.String() + fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: claims, namespace: istio-system}
spec: {selector: {matchLabels: {istio: ingressgateway}}, rules: [{to: [{operation: {paths: ["/c*"]}}]}]}
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: istio-system}
spec:
  selector: {matchLabels: {istio: ingressgateway}}
  jwtRules:
  - issuer: https://issuer
    audiences: [web]
    jwks: '%s'
    fromHeaders: [{name: authorization, prefix: "Bearer "}, {name: x-jwt}]
    fromParams: [token]
    fromCookies: [session]
    outputPayloadToHeader: x-payload
    outputClaimToHeaders: [{header: x-sub, claim: sub}, {header: x-role, claim: realm.role}]
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: more, namespace: istio-system}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: named}]
  jwtRules:
  - {issuer: "https://second", jwks: '%s', fromHeaders: [{name: x-second}], forwardOriginalToken: true}
  - {issuer: "https://nobody", fromHeaders: [{name: x-nobody}]}
`, first.keys(t), second.keys(t)))
	sources := w.objects.Sources()
	sources.MeshConfig = "defaultConfig: {gatewayTopology: {numTrustedProxies: 1}}\n"
	w.pilotd = parts.StartPilotd(t, sources)
	w.backends()
	edge := w.gateway(at, parts.Delta, w.pilotd.Address(), w.network.Pod(t, outsider().ip))
	edge.envoy.AwaitReady()
	tokens := formTokens(t, first, second)
	web := w.network.Pod(t, "10.244.9.2").Client()
	ask := func(a formAsk) (parts.Answer, error) {
		return a.send(web, "http://"+at.ip+":8080", publicHost, tokens)
	}
	parts.Eventually(t, "the gateway answers", func() error {
		a, err := ask(formAsk{method: "GET", path: "/c/"})
		if err == nil && a.Name == "" {
			err = fmt.Errorf("status %d", a.Status)
		}
		return err
	})
	for i, f := range forms {
		for _, a := range f.requests(t, i) {
			answer, err := ask(a)
			answered := err == nil && answer.Name != ""
			if answered != a.want || !answered && answer.Status != http.StatusForbidden {
				t.Errorf("form %d %+v: %s: answered %v (%d), error %v", i, f, a.text, answered, answer.Status, err)
			}
		}
	}
	claimsDecide(t, claims, ask)
	signer := func(claims map[string]any) string { return first.token(t, claims) }
	tokensOfGateways(t, signer, ask)
	if err := edge.envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
}

// claimsDecide asks each row without a token, with one, and with another.
func claimsDecide(t *testing.T, rows []claimRow, ask func(formAsk) (parts.Answer, error)) {
	for i, r := range rows {
		for token, want := range map[string]bool{"": r.none, "T1": r.one, "T2": r.two} {
			a := formAsk{method: "GET", path: fmt.Sprintf("/c%d/", i), headers: map[string]string{}}
			switch token {
			case "T1":
				a.headers["authorization"] = "Bearer <T1>"
			case "T2":
				a.headers["x-second"] = "<T2>"
			}
			answer, err := ask(a)
			if got := answer.Name == "web-v1"; err != nil || got != want || !strings.HasPrefix(answer.Name, "web-v") {
				t.Errorf("route %d %s, token %q: %q %d, %v, want v1: %v", i, r.match, token, answer.Name, answer.Status, err, want)
			}
		}
	}
}

// tokensOfGateways asks with tokens at every place, good and bad: a good one reaches the route of its claims and tells
// the application what is in it, a bad one is refused, and so is every one of an issuer without keys.
func tokensOfGateways(t *testing.T, token func(map[string]any) string, ask func(formAsk) (parts.Answer, error)) {
	past := time.Now().Add(-time.Hour).Unix()
	for _, c := range []struct {
		name, path, header, value string
		want                      int
	}{
		{"header", "/c0/", "authorization", "Bearer <T1>", 200}, {"another header", "/c0/", "x-jwt", "<T1>", 200},
		{"parameter", "/c0/?token=" + token(nil), "", "", 200}, {"cookie", "/c0/", "cookie", "session=<T1>; x=y", 200},
		{"a foreign header", "/c0/", "x-foreign", "<T1>", 0}, {"a foreign parameter", "/c0/?jwt=" + token(nil), "", "", 0},
		{"cut off", "/c0/", "x-jwt", cutOff(token(nil)), 401}, {"nonsense", "/c0/", "x-jwt", "nonsense", 401},
		{"expired", "/c0/?token=" + token(map[string]any{"exp": past}), "", "", 401},
		{"another's issuer", "/c0/", "x-jwt", token(map[string]any{"iss": "https://second"}), 401},
		{"another's audience", "/c0/", "x-jwt", token(map[string]any{"aud": "other"}), 403},
		{"no audience", "/c0/", "x-jwt", token(map[string]any{"aud": nil}), 403},
		{"no issuer", "/c0/", "x-jwt", token(map[string]any{"iss": nil}), 401},
		{"an issuer without keys", "/c0/", "x-nobody", token(map[string]any{"iss": "https://nobody"}), 401},
		{"a key of another issuer", "/c0/", "x-second", token(map[string]any{"iss": "https://second"}), 401},
	} {
		a := formAsk{method: "GET", path: c.path, headers: map[string]string{}}
		if c.header != "" {
			a.headers[c.header] = c.value
		}
		answer, err := ask(a)
		got := answer.Status
		if c.want == 0 && strings.HasPrefix(answer.Name, "web-v2") { // as without a token
			got = 0
		}
		if err != nil || got != c.want {
			t.Errorf("%s: status %d from %q, %v, want %d", c.name, answer.Status, answer.Name, err, c.want)
		}
		h := answer.Header
		if c.want == 200 && (answer.Name != "web-v1" || h.Get("x-echo-header-x-sub") != "bob" ||
			h.Get("x-echo-header-x-role") != "admin" || h.Get("x-echo-header-x-payload") == "" ||
			h.Get("x-echo-header-authorization") != "") {
			t.Errorf("%s: %q is told of %v", c.name, answer.Name, h)
		}
	}
}
