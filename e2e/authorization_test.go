package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
)

// accessRow is a policy and a request to its path: who asks, with which headers, and whether it is answered.
type accessRow struct {
	action string // "" allows
	// source, operation and when are those of its only rule; the path is added to the operation.
	source, operation, when string
	mesh                    bool // the client has an Envoy, and so an identity
	headers                 string
	want                    bool
}

// plainRows returns the rows of accessRows that say something only of one client, or of operations.
func plainRows() []accessRow {
	const inside, outside = true, false
	return []accessRow{
		{"", "", "", "", outside, "", true}, {"", "", "", "", inside, "", true},
		{"DENY", "", "", "", outside, "", false}, {"DENY", "", "", "", inside, "", false},
		{"AUDIT", "", "", "", inside, "", false}, // nothing allows it
		{"", `principals: ["*"]`, "", "", outside, "", false}, {"", `notPrincipals: ["*"]`, "", "", outside, "", true},
		{"DENY", `notPrincipals: ["*"]`, "", "", outside, "", false},
		{"DENY", `principals: ["*"]`, "", "", outside, "", true},
		{"", `namespaces: ["*"]`, "", "", outside, "", false},
		{"DENY", `notNamespaces: [shop]`, "", "", outside, "", false},
		{"", `ipBlocks: [10.244.9.1]`, "", "", outside, "", true},
		{"", `ipBlocks: [10.244.9.0/24]`, "", "", outside, "", true},
		{"", `ipBlocks: [10.244.1.0/24]`, "", "", outside, "", false},
		{"DENY", `notIpBlocks: [10.244.1.0/24]`, "", "", outside, "", false},
		{"", "", `methods: [GET]`, "", inside, "", true}, {"", "", `methods: [POST, PUT]`, "", inside, "", false},
		{"", "", `notMethods: [GET]`, "", inside, "", false}, {"DENY", "", `methods: ["G*"]`, "", inside, "", false},
		{"", "", `ports: ["8080"]`, "", inside, "", true}, {"", "", `ports: ["80"]`, "", inside, "", false},
		{"", "", `notPorts: ["8080"]`, "", inside, "", false}, {"DENY", "", `notPorts: ["80"]`, "", inside, "", false},
		{"", "", `hosts: ["SECURE.*"]`, "", inside, "", true}, {"", "", `hosts: ["other.*"]`, "", inside, "", false},
		{"", "", `notHosts: ["Secure.*"]`, "", inside, "", false}, {"", "", `hosts: ["*"]`, "", inside, "", true},
	}
}

// accessRows returns what a client in the mesh (spiffe://cluster.local/ns/shop/sa/default at 10.244.1.1) and one
// outside of it (10.244.9.1) may ask. A token TOKEN is valid, of issuer https://issuer and subject bob.
func accessRows() []accessRow {
	const inside = true
	both := func(source, when string, want bool, headers string) []accessRow {
		return []accessRow{
			{"", source, "", when, inside, headers, want}, {"DENY", source, "", when, inside, headers, !want},
		}
	}
	rows := plainRows()
	for _, c := range []struct {
		source, when string
		want         bool
		headers      string
	}{
		{`principals: ["cluster.local/ns/shop/sa/default"]`, "", true, ""},
		{`principals: ["cluster.local/ns/shop/sa/other"]`, "", false, ""},
		{`principals: ["*/sa/default"]`, "", true, ""}, {`principals: ["cluster.local/ns/shop/*"]`, "", true, ""},
		{`principals: ["*"]`, "", true, ""}, {`notPrincipals: ["*"]`, "", false, ""},
		{`principals: ["other/ns/shop/sa/default"]`, "", false, ""},
		{`namespaces: [shop]`, "", true, ""},
		{`namespaces: [sho]`, "", false, ""}, {`namespaces: ["s*"]`, "", true, ""},
		{`notNamespaces: [shop]`, "", false, ""}, {`notNamespaces: [other]`, "", true, ""},
		{`serviceAccounts: [default]`, "", true, ""}, {`serviceAccounts: [shop/default]`, "", true, ""},
		{`serviceAccounts: [other/default]`, "", false, ""}, {`serviceAccounts: [defaul]`, "", false, ""},
		{`trustDomains: [cluster.local]`, "", true, ""}, {`trustDomains: [other]`, "", false, ""},
		{`trustDomains: ["*.local"]`, "", true, ""}, {`notTrustDomains: ["cluster*"]`, "", false, ""},
		{`ipBlocks: [10.244.1.1]`, "", true, ""}, {`ipBlocks: [10.244.1.2]`, "", false, ""},
		{`remoteIpBlocks: [10.244.1.1]`, "", true, ""}, {`notRemoteIpBlocks: [10.0.0.0/8]`, "", false, ""},
		{`requestPrincipals: ["*"]`, "", false, ""}, {`notRequestPrincipals: ["*"]`, "", true, ""},
		{`requestPrincipals: ["*"]`, "", true, "authorization: Bearer TOKEN"},
		{`requestPrincipals: ["https://issuer/bob"]`, "", true, "authorization: Bearer TOKEN"},
		{`requestPrincipals: ["https://issuer/eve"]`, "", false, "authorization: Bearer TOKEN"},
		{`requestPrincipals: ["https://issuer/*"]`, "", true, "authorization: Bearer TOKEN"},
		{`requestPrincipals: ["*/bob"]`, "", true, "authorization: Bearer TOKEN"},
		{"", `{key: request.auth.audiences, values: [web]}`, true, "authorization: Bearer TOKEN"},
		{"", `{key: request.auth.audiences, values: [other]}`, false, "authorization: Bearer TOKEN"},
		{"", `{key: request.auth.presenter, values: [client]}`, true, "authorization: Bearer TOKEN"},
		{"", `{key: "request.auth.claims[groups]", values: [admin]}`, true, "authorization: Bearer TOKEN"},
		{"", `{key: "request.auth.claims[groups]", values: [nobody]}`, false, "authorization: Bearer TOKEN"},
		{"", `{key: "request.auth.claims[realm][role]", values: ["a*"]}`, true, "authorization: Bearer TOKEN"},
		{"", `{key: "request.auth.claims[scope]", values: [write]}`, true, "authorization: Bearer TOKEN"},
		{"", `{key: "request.auth.claims[groups]", notValues: [admin]}`, false, "authorization: Bearer TOKEN"},
		{"", `{key: "request.headers[x-user]", values: [bob]}`, true, "x-user: bob"},
		{"", `{key: "request.headers[x-user]", values: ["b*"]}`, true, "x-user: bob"},
		{"", `{key: "request.headers[x-user]", values: ["*"]}`, false, ""},
		{"", `{key: "request.headers[x-user]", notValues: [bob]}`, false, "x-user: bob"},
		{"", `{key: "request.headers[x-user]", notValues: [bob]}`, true, ""},
		{"", `{key: source.ip, values: [10.244.1.0/24]}`, true, ""},
		{"", `{key: source.ip, notValues: [10.244.1.1]}`, false, ""},
		{"", `{key: remote.ip, values: [10.244.1.1]}`, true, ""},
		{"", `{key: source.namespace, values: [shop]}`, true, ""},
		{"", `{key: source.principal, values: ["*/sa/default"]}`, true, ""},
		{"", `{key: source.serviceAccount, values: [default]}`, true, ""},
		{"", `{key: destination.ip, values: [10.244.4.1]}`, true, ""},
		{"", `{key: destination.ip, values: [10.244.4.2]}`, false, ""},
		{"", `{key: destination.port, values: ["8080"]}`, true, ""},
		{"", `{key: destination.port, notValues: ["8080"]}`, false, ""},
		{`namespaces: [shop]`, `{key: "request.headers[x-user]", values: [bob]}`, true, "x-user: bob"},
		{`namespaces: [shop]`, `{key: "request.headers[x-user]", values: [bob]}`, false, "x-user: eve"},
	} {
		rows = append(rows, both(c.source, c.when, c.want, c.headers)...)
	}
	return rows
}

// path returns where a row's request goes. Where it denies, another policy allows.
func (r accessRow) path(i int) string {
	if r.action == "DENY" {
		return fmt.Sprintf("/denied/r%d", i)
	}
	return fmt.Sprintf("/r%d", i)
}

func (r accessRow) yaml(i int) string {
	operation := fmt.Sprintf("paths: [%q]", r.path(i))
	if r.operation != "" {
		operation += ", " + r.operation
	}
	rule := "to: [{operation: {" + operation + "}}]"
	if r.source != "" {
		rule += ", from: [{source: {" + r.source + "}}]"
	}
	if r.when != "" {
		rule += ", when: [" + r.when + "]"
	}
	return policyYAML(fmt.Sprint("r", i), r.action, rule)
}

func policyYAML(name, action, rule string) string {
	if action == "" {
		action = "ALLOW"
	}
	return fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: %s, namespace: shop}
spec: {selector: {matchLabels: {app: secure}}, action: %s, rules: [{%s}]}
`, name, action, rule)
}

// issuer signs tokens.
type issuer struct{ key *ecdsa.PrivateKey }

func newIssuer(t *testing.T) issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{key}
}

// keys returns its key set.
func (s issuer) keys(t *testing.T) string {
	point, err := s.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"k","x":%q,"y":%q}]}`,
		text(point[1:33]), text(point[33:]))
}

// token returns a token with claims, on top of those of a valid one, of which nil takes one out.
func (s issuer) token(t *testing.T, claims map[string]any) string {
	all := map[string]any{"iss": "https://issuer", "sub": "bob", "aud": []string{"web"}, "azp": "client",
		"exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"users", "admin"}, "scope": "read write",
		"realm": map[string]any{"role": "admin"}}
	for k, v := range claims {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	signed := text([]byte(`{"alg":"ES256","kid":"k","typ":"JWT"}`)) + "." + text(body)
	sum := sha256.Sum256([]byte(signed))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	v.FillBytes(signature[32:])
	return signed + "." + text(signature)
}

// TestAuthorization runs a table of policies and requests through two Envoys: each policy guards a path of its own.
func TestAuthorization(t *testing.T) {
	rows, signer := accessRows(), newIssuer(t)
	var policies strings.Builder
	for i, r := range rows {
		policies.WriteString(r.yaml(i))
	}
	policies.WriteString(policyYAML("open", "", `to: [{operation: {paths: ["/denied/*", "/token", "/t/{*}/x", "/u/{**}"]}}]`))
	policies.WriteString(policyYAML("dry", "DENY", "") + "")
	objects := strings.Replace(policies.String(), "metadata: {name: dry, namespace: shop}",
		`metadata: {name: dry, namespace: shop, annotations: {istio.io/dry-run: "true"}}`, 1)
	w := newWorld(t, inDirectory, baseMesh()+securePod().yaml()+
		service("shop/secure", secureVIP, "app: secure", "{name: http, port: 80, targetPort: 8080}")+
		slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}", securePod())+objects+fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec:
  selector: {matchLabels: {app: secure}}
  jwtRules:
  - {issuer: "https://issuer", audiences: [web], jwks: '%s', outputClaimToHeaders: [{header: x-sub, claim: sub}]}
  - {issuer: "https://nobody"}
`, signer.keys(t)))
	client, envoys := w.securePair(t, parts.Delta, map[string]string{"8080": "secure"})

	clients := map[bool]*http.Client{true: client.Client(), false: w.network.Pod(t, outsider().ip).Client()}
	ask := func(mesh bool, path string, headers ...string) (parts.Answer, error) {
		base := "http://" + securePod().ip + ":8080"
		if mesh {
			base = "http://" + secureVIP
		}
		return parts.Ask(clients[mesh], base+path, secureHost, headers...)
	}
	for _, mesh := range []bool{true, false} {
		parts.Eventually(t, "an allowed path is answered", func() error {
			a, err := ask(mesh, "/denied/none")
			if err == nil && a.Name != "secure" {
				err = fmt.Errorf("answer %d %q", a.Status, a.Body)
			}
			return err
		})
	}
	token := signer.token(t, nil)
	for i, r := range rows {
		var headers []string
		if name, v, ok := strings.Cut(r.headers, ": "); ok {
			headers = []string{name, strings.ReplaceAll(v, "TOKEN", token)}
		}
		a, err := ask(r.mesh, r.path(i), headers...)
		if got := a.Name == "secure"; err != nil || got != r.want || !got && a.Status != http.StatusForbidden {
			t.Errorf("%+v: status %d, answered %v, error %v", r, a.Status, got, err)
		}
	}
	tokenAnswers(t, signer, func(token string) (int, http.Header) {
		headers := []string{"authorization", "Bearer " + token}
		if token == "" {
			headers = nil
		}
		a, err := ask(true, "/token", headers...)
		if err != nil {
			t.Error(err)
		}
		return a.Status, a.Header
	})
	for path, want := range map[string]int{"/t/a/x": 200, "/t/a/b/x": 403, "/t/x": 403, "/u/a/b": 200, "/u/": 200,
		"/none": 403, "/token/more": 403} {
		if a, err := ask(true, path); err != nil || a.Status != want {
			t.Errorf("%s: %d %v, want %d", path, a.Status, err, want)
		}
	}
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}

// tokenAnswers asks with tokens: signature, issuer, audience and time decide; a request without a token passes.
func tokenAnswers(t *testing.T, signer issuer, ask func(token string) (int, http.Header)) {
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"none":               {"", http.StatusOK},
		"valid":              {signer.token(t, nil), http.StatusOK},
		"another's key":      {newIssuer(t).token(t, nil), http.StatusUnauthorized},
		"unknown issuer":     {signer.token(t, map[string]any{"iss": "https://other"}), http.StatusUnauthorized},
		"issuer of no keys":  {signer.token(t, map[string]any{"iss": "https://nobody"}), http.StatusUnauthorized},
		"another's audience": {signer.token(t, map[string]any{"aud": []string{"other"}}), http.StatusForbidden},
		"expired": {signer.token(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
			http.StatusUnauthorized},
		"no token at all": {"nonsense", http.StatusUnauthorized},
		"cut off":         {cutOff(signer.token(t, nil)), http.StatusUnauthorized},
	} {
		status, header := ask(c.token)
		if status != c.want {
			t.Errorf("token %s: status %d, want %d", name, status, c.want)
		}
		if name == "valid" && header.Get("x-echo-header-x-sub") != "bob" {
			t.Errorf("the application is told of %v", header)
		}
	}
}

// cutOff returns a token without the last bytes of its signature. One character less might be the same signature.
func cutOff(token string) string { return token[:len(token)-20] }
