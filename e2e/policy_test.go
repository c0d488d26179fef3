package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

const (
	policyMesh = "trustDomainAliases: [old.domain]\n"
	bytesVIP   = "10.96.1.8"
)

// TestPolicyForms runs the table of policyForms through two Envoys, and then what is said of a whole workload.
func TestPolicyForms(t *testing.T) {
	w := &world{t: t, network: testnet.New(t), secrets: parts.NewAuthority(t), objects: inDirectory(t)}
	first, second := newIssuer(t), newIssuer(t)
	server, client := w.network.Pod(t, securePod().ip), w.network.Pod(t, clientDelta().ip)
	for _, port := range []string{":8080", ":8081", ":8090"} {
		parts.StartEcho(t, server, port, "secure")
	}
	ports, targets := "", ""
	forms := policyForms()
	var policies strings.Builder
	for i, f := range forms {
		policies.WriteString(f.yaml(i))
		if f.bytes() {
			ports += fmt.Sprintf("{name: tcp-%[1]d, port: %[1]d}, ", formPort(i))
			targets += fmt.Sprintf("{name: tcp-%[1]d, port: %[1]d, protocol: TCP}, ", formPort(i))
			parts.StartEcho(t, client, fmt.Sprint(":", formPort(i)), "secure")
		}
	}
	called := clientDelta()
	called.labels += ", security.istio.io/tlsMode: istio"
	w.objects.Apply(baseMesh() + securePod().yaml() + called.yaml() + service("shop/secure", secureVIP, "app: secure",
		"{name: http, port: 80, targetPort: 8080}, {name: http-two, port: 8081}") +
		slice("secure", "shop",
			"{name: http, port: 8080, protocol: TCP}, {name: http-two, port: 8081, protocol: TCP}",
			securePod()) +
		service("shop/bytes", bytesVIP, "app: client", ports) + slice("bytes", "shop", targets, clientDelta()) +
		policies.String() + fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec:
  selector: {matchLabels: {app: secure}}
  jwtRules:
  - {issuer: "https://issuer", audiences: [web], jwks: '%s', forwardOriginalToken: true}
  - {issuer: "https://second", jwks: '%s', fromHeaders: [{name: x-second}], forwardOriginalToken: true}
`, first.keys(t), second.keys(t)))
	sources := w.objects.Sources()
	sources.MeshConfig = policyMesh
	w.pilotd = parts.StartPilotd(t, sources)
	envoys := w.pair(t, parts.Delta, server, client)
	tokens := formTokens(t, first, second)
	outside := w.network.Pod(t, outsider().ip).Client()
	web, back := client.Client(), server.Client()
	ask := func(a formAsk) (parts.Answer, error) {
		url, host, by := "http://"+secureVIP, secureHost, web
		switch bytes := forms[a.form].bytes(); {
		case bytes && a.outside:
			url, by = fmt.Sprintf("http://%s:%d", clientDelta().ip, formPort(a.form)), outside
		case bytes:
			url, by = fmt.Sprintf("http://%s:%d", bytesVIP, formPort(a.form)), back
		case a.outside:
			url, by = "http://"+securePod().ip+":8080", outside
		}
		if port, ok := a.headers["port"]; ok {
			url = strings.TrimSuffix(url, ":8080") + ":" + port
		}
		return a.send(by, url, host, tokens)
	}
	var rows []formAsk
	for i, f := range forms {
		rows = append(rows, f.requests(t, i)...)
	}
	parts.Eventually(t, "the first of each kind is answered", func() error {
		for _, a := range []formAsk{rows[0], {outside: true, method: "GET", path: formPath(0) + "/a"}} {
			if answer, err := ask(a); err != nil || answer.Name != "secure" {
				return fmt.Errorf("%+v: %d %v", a, answer.Status, err)
			}
		}
		return nil
	})
	for _, a := range rows {
		answer, err := ask(a)
		// A connection of bytes is closed where a request is answered 403.
		refused := err != nil && forms[a.form].bytes() || err == nil && answer.Name == "" &&
			(answer.Status == http.StatusForbidden || forms[a.form].bytes())
		if answered := err == nil && answer.Name == "secure"; answered != a.want || !answered && !refused {
			t.Errorf("form %d %+v: %s: answered %v (%d), error %v", a.form, forms[a.form], a.text, answered, answer.Status, err)
		}
	}
	t.Logf("%d requests for %d forms of policies", len(rows), len(forms))
	w.objects.Delete(policies.String())
	w.policyOfAll(t, func(outside bool) (parts.Answer, error) {
		return ask(formAsk{outside: outside, method: "GET", path: "/"})
	})
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}

// policyOfAll tries policies that say something of all requests to a workload, one after the other.
func (w *world) policyOfAll(t *testing.T, ask func(outside bool) (parts.Answer, error)) {
	const selected = "selector: {matchLabels: {app: secure}}, "
	policy := func(name, at, spec string) string {
		return fmt.Sprintf("\n---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n"+
			"metadata: {name: %s, namespace: %s}\nspec: {%s}\n", name, at, spec)
	}
	tried := strings.Replace(policy("all", "shop", selected+"action: DENY, rules: [{}]"), "namespace: shop",
		`namespace: shop, annotations: {istio.io/dry-run: "true"}`, 1)
	open := policy("open", "shop", "rules: [{}]")
	none := policy("all", "shop", "")
	// What two steps in a row want is never the same, so that a step cannot be answered by the one before it.
	for _, step := range []struct {
		name, objects     string
		inside, outsiders bool
	}{
		{"a policy without a rule", none, false, false},
		{"a rule that says nothing", open, true, true},
		{"none in the root namespace", policy("all", "istio-system", ""), false, false},
		{"one that denies everything, tried only", tried, true, true},
		{"a rule that says nothing, to deny", open + policy("all", "shop", "action: DENY, rules: [{}]"), false, false},
		{"an audit alone", policy("all", "shop", selected+"action: AUDIT, rules: [{}]"), true, true},
		{"from the mesh", policy("all", "shop", selected+`rules: [{from: [{source: {principals: ["*"]}}]}]`), true, false},
		{"of a Service, which is for waypoints", policy("all", "shop",
			`targetRefs: [{kind: Service, name: secure, group: ""}], action: DENY, rules: [{}]`), true, true},
		{"one that is refused", policy("bad", "shop", "action: DENY, rules: [{when: [{key: nonsense, values: [x]}]}]"), false,
			false},
		{"of others", policy("all", "other", "") + policy("all", "shop", "selector: {matchLabels: {app: other}}"), true,
			true},
	} {
		w.objects.Apply(step.objects)
		parts.Eventually(t, step.name, func() error {
			for outside, want := range map[bool]bool{false: step.inside, true: step.outsiders} {
				a, err := ask(outside)
				if got := a.Name == "secure"; err != nil || got != want || !got && a.Status != http.StatusForbidden {
					return fmt.Errorf("from outside %v: answered %v, %d, %v", outside, got, a.Status, err)
				}
			}
			return nil
		})
		w.objects.Delete(step.objects)
	}
}
