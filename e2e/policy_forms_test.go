package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// policyForm is some policies, and requests that they decide about. The policies of a form are for a path of its own,
// written P, or for a port of bytes of its own, written PORT, so that all forms are in force at once.
type policyForm struct {
	// open: another policy allows what the form is for.
	open bool
	// policies are "ACTION [dry] [root] [edge] [named]: rule; rule", the rules in YAML, with " | " between policies. Root
	// ones are in the root namespace; edge ones are for a gateway, named ones for the Gateway that it stands for.
	policies string
	// asks are "yes|no [out] [METHOD] PATH {header: value}", with semicolons between; "out" is a client outside of the
	// mesh. The headers host and port say where the request goes.
	asks string
}

// formAsk is one request of a form.
type formAsk struct {
	form               int
	want, outside      bool
	method, path, text string
	headers            map[string]string
}

// formTokens puts a token of each issuer in the place of <T1> and <T2>, which no token has in it.
func formTokens(t *testing.T, first, second issuer) *strings.Replacer {
	return strings.NewReplacer("<T1>", first.token(t, map[string]any{"dotted.name": "yes", "number": 7}),
		"<T2>", second.token(t, map[string]any{"iss": "https://second", "sub": "eve", "aud": nil, "azp": nil, "groups": nil,
			"scope": nil, "realm": nil}))
}

// send asks for the path below a URL, at a host unless the request names another, with tokens in its headers.
func (a formAsk) send(by *http.Client, url, host string, tokens *strings.Replacer) (parts.Answer, error) {
	r, err := http.NewRequest(a.method, url+a.path, nil)
	if err != nil {
		return parts.Answer{}, err
	}
	r.Host = host
	for name, v := range a.headers {
		switch name {
		case "port": // part of the URL
		case "host":
			r.Host = v
		case "x-forwarded-for":
			r.Header.Set(name, strings.ReplaceAll(v, " ", ", "))
		default:
			r.Header.Set(name, tokens.Replace(v))
		}
	}
	return parts.Send(by, r)
}

// bytes reports whether the form is for a port of bytes.
func (f policyForm) bytes() bool { return strings.Contains(f.policies, "PORT") }

// formPort returns the port of the form i, where it is for bytes.
func formPort(i int) int { return 9100 + i }

// yaml returns the objects of the form i.
func (f policyForm) yaml(i int) string {
	text, edge := f.policies, strings.Contains(f.policies, " edge") || strings.Contains(f.policies, " named")
	switch {
	case f.open && f.bytes():
		text += ` | ALLOW: to: [{operation: {ports: ["PORT"]}}]`
	case f.open && edge:
		text += ` | ALLOW edge: to: [{operation: {paths: [P, "P/*"]}}]`
	case f.open:
		text += ` | ALLOW: to: [{operation: {paths: [P, "P/*"]}}]`
	}
	var out strings.Builder
	for n, policy := range strings.Split(text, " | ") {
		head, rules, _ := strings.Cut(policy, ": ")
		action, flags, _ := strings.Cut(head, " ")
		namespace, annotations, target := "shop", "", "selector: {matchLabels: {app: secure}}"
		switch {
		case f.bytes():
			target = "selector: {matchLabels: {app: client}}"
		case strings.Contains(flags, "named"):
			target = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: named}]"
		case edge:
			target = "selector: {matchLabels: {istio: ingressgateway}}"
		}
		if strings.Contains(flags, "root") || edge {
			namespace = "istio-system"
		}
		if strings.Contains(flags, "dry") {
			annotations = `, annotations: {istio.io/dry-run: "true"}`
		}
		fmt.Fprintf(&out, `
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: form%d-%d, namespace: %s%s}
spec: {%s, action: %s, rules: [{%s}]}
`, i, n, namespace, annotations, target, action, strings.ReplaceAll(rules, "; ", "}, {"))
	}
	return strings.NewReplacer("PORT", fmt.Sprint(formPort(i)), "P/", formPath(i)+"/", "[P,", "["+formPath(i)+",",
		"[P]", "["+formPath(i)+"]").Replace(out.String())
}

// formPath begins the paths of the form i.
func formPath(i int) string { return fmt.Sprintf("/f%d", i) }

// requests returns the requests of the form i.
func (f policyForm) requests(t *testing.T, i int) (out []formAsk) {
	for one := range strings.SplitSeq(f.asks, "; ") {
		a := formAsk{form: i, method: "GET", text: one, headers: map[string]string{}}
		line, headers, has := strings.Cut(strings.TrimSuffix(one, "}"), " {")
		for pair := range strings.SplitSeq(headers, ", ") {
			if name, v, ok := strings.Cut(pair, ": "); has && ok {
				a.headers[name] = v
			}
		}
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "yes" && words[0] != "no" {
			t.Fatalf("form %d: %q is no request", i, one)
		}
		a.want = words[0] == "yes"
		if words = words[1:]; words[0] == "out" {
			a.outside, words = true, words[1:]
		}
		if len(words) == 2 {
			a.method, words = words[0], words[1:]
		}
		a.path = formPath(i) + words[0]
		out = append(out, a)
	}
	return out
}

// to is a rule about what is asked for, from about who asks, when about a condition; without it, below the form's path.
func to(operation string) string { return "to: [{operation: {" + operation + "}}]" }
func below(more string) string   { return to(`paths: ["P/*"], ` + more) }
func from(source string) string {
	return to(`paths: ["P/*"]`) + ", from: [{source: {" + source + "}}]"
}
func when(key, values string) string {
	return to(`paths: ["P/*"]`) + fmt.Sprintf(", when: [{key: %q, %s}]", key, values)
}
func atPort(more string) string { return to(`ports: ["PORT"]` + more) }

// policyForms are in the groups below.
func policyForms() (out []policyForm) {
	for _, group := range [][]policyForm{pathForms(), operationForms(), sourceForms(), conditionForms(), tokenForms(),
		joinedForms(), bytesForms()} {
		out = append(out, group...)
	}
	return out
}

// pathForms are about paths, which Envoy makes normal before: dots are resolved, escaped letters are letters; slashes
// stay as many as they are.
func pathForms() []policyForm {
	const odd = "/./a; %[1]s /b/../a; %[1]s /%%61; %[1]s /x/%%2e%%2e/a; %[1]s /a?q=1; %[1]s /a?; %[1]s /b/..//../a; " +
		"%[2]s /A; %[2]s /a/; %[2]s /ab; %[2]s /a/b; %[2]s //a; %[2]s /a%%2fb; %[2]s /a;v=1; %[2]s /"
	spelled := func(matched, other string) string {
		return matched + " /a; " + matched + " " + strings.ReplaceAll(fmt.Sprintf(odd, matched, other), ";v", "%3bv")
	}
	return []policyForm{
		{false, "ALLOW: " + to(`paths: ["P/a"]`), spelled("yes", "no")},
		{true, "DENY: " + to(`paths: ["P/a"]`), spelled("no", "yes")},
		{false, "ALLOW: " + below(`notPaths: ["P/a"]`), spelled("no", "yes")},
		{false, "ALLOW: " + to(`paths: ["P/a*"]`), "yes /a; yes /ab; yes /a/b; yes /a/b?c; no /b; no /b/a; yes /b/../ab"},
		{true, "DENY: " + to(`paths: ["P/a*"]`), "no /a; no /ab; no /a/b; yes /b; yes /b/a; no /%61b; no /c/../a/b"},
		{true, "DENY: " + below(`notPaths: ["P/a*"]`), "yes /a; yes /ab; no /b; no /a/../b"},
		{false, "ALLOW: " + to(`paths: ["P/x", "P/y"], notPaths: ["P/y"]`), "yes /x; no /y; no /z"},
		{false, "ALLOW: " + to(`paths: ["P/{*}"]`), "yes /a; yes /a.b; no /a/b; no /; no /a/; yes /a?b=/c"},
		{false, "ALLOW: " + to(`paths: ["P/{*}/b"]`), "yes /a/b; no /b; no /a/a/b; no /a/b/; no /a/c"},
		{false, "ALLOW: " + to(`paths: ["P/{**}"]`), "yes /a; yes /a/b; yes /a/b/c.d; yes /"},
		{false, "ALLOW: " + to(`paths: ["P/a/{**}/z"]`), "yes /a/b/z; yes /a/b/c/z; no /b/z; no /a/b/y"},
		{false, "ALLOW: " + to(`paths: ["P/{*}/b/{**}"]`), "yes /a/b/c; yes /a/b/c/d; no /a/c/b; no /b/c"},
		{true, "DENY: " + to(`paths: ["P/{*}/admin"]`), "no /x/admin; no /x/y/../admin; yes /x/y/admin; yes /admin"},
	}
}

// operationForms are about methods, hosts and ports.
func operationForms() []policyForm {
	return []policyForm{
		{false, "ALLOW: " + below(`methods: [GET]`), "yes /a; no POST /a; no HEAD /a; no OPTIONS /a; no PUT /a"},
		{true, "DENY: " + below(`methods: [GET]`), "no /a; yes POST /a; yes HEAD /a"},
		{false, "ALLOW: " + below(`methods: [get]`), "no /a; no POST /a"},
		{false, "ALLOW: " + below(`methods: ["P*"]`), "no /a; yes POST /a; yes PUT /a; yes PATCH /a"},
		{false, "ALLOW: " + below(`methods: ["*T"]`), "yes /a; yes POST /a; yes PUT /a; no PATCH /a"},
		{false, "ALLOW: " + below(`methods: ["*"]`), "yes /a; yes DELETE /a"},
		{false, "ALLOW: " + below(`notMethods: [DELETE, "P*"]`), "yes /a; no POST /a; no DELETE /a; yes HEAD /a"},
		{true, "DENY: " + below(`notMethods: [GET, HEAD]`), "yes /a; yes HEAD /a; no POST /a"},
		{false, "ALLOW: " + below(`methods: ["*"], notMethods: [POST]`), "yes /a; no POST /a"},
		{false, "ALLOW: " + below(`hosts: [a.example]`), "yes out /a {host: a.example}; yes out /a {host: A.Example}; " +
			"no out /a {host: b.example}; no out /a {host: a.example:8080}; no out /a {host: x.a.example}"},
		{false, "ALLOW: " + below(`hosts: ["a.example:*"]`), "yes out /a {host: a.example:8080}; no out /a {host: a.example}"},
		{false, "ALLOW: " + below(`hosts: ["*.Example"]`), "yes out /a {host: a.example}; yes out /a {host: B.EXAMPLE}; " +
			"no out /a {host: a.example.com}; no out /a {host: example}"},
		{false, "ALLOW: " + below(`hosts: ["a.*"]`), "yes out /a {host: a.example}; yes out /a {host: A.x:1}; no out /a {host: ba.x}"},
		{true, "DENY: " + below(`notHosts: [a.example, "*.b"]`), "yes out /a {host: a.example}; yes out /a {host: x.b}; " +
			"no out /a {host: c.example}; no out /a {host: a.example:80}"},
		{true, "DENY: " + below(`hosts: ["*"]`), "no /a; no out /a {host: x}"},
		{false, "ALLOW: " + below(`ports: ["8080"]`), "yes out /a; no out /a {port: 8081}; no out /a {port: 8090}"},
		{false, "ALLOW: " + below(`ports: ["8081", "8090"]`), "no out /a; yes out /a {port: 8081}; yes out /a {port: 8090}"},
		{false, "ALLOW: " + below(`ports: ["0"]`), "no out /a; no /a"},
		{false, "ALLOW: " + below(`notPorts: ["8081"]`), "yes out /a; no out /a {port: 8081}; yes out /a {port: 8090}"},
		{true, "DENY: " + below(`notPorts: ["8080"]`), "yes out /a; no out /a {port: 8081}; yes /a"},
		{true, "DENY: " + below(`ports: ["80"]`), "yes /a"}, // that is the service's port
		{false, `ALLOW: to: [{operation: {paths: ["P/a"], methods: [GET]}}, {operation: {paths: ["P/b"], methods: [POST]}}]`,
			"yes /a; no POST /a; no /b; yes POST /b"},
	}
}

// sourceForms are about who asks. The client in the mesh is spiffe://cluster.local/ns/shop/sa/default at 10.244.1.1;
// old.domain is an alias of cluster.local.
func sourceForms() []policyForm {
	return []policyForm{
		{false, "ALLOW: " + from(`principals: ["old.domain/ns/shop/sa/default"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`principals: ["other.domain/ns/shop/sa/default"]`), "no /a; no out /a"},
		{false, "ALLOW: " + from(`principals: ["*/ns/shop/sa/default"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`principals: ["*local/ns/shop/sa/default"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`principals: ["*foo*"]`), "no /a; no out /a"},
		{false, "ALLOW: " + from(`principals: ["*/sa/defaul."]`), "no /a"},
		{true, "DENY: " + from(`principals: ["old.domain/ns/shop/sa/default"]`), "no /a; yes out /a"},
		{true, "DENY: " + from(`notPrincipals: ["old.domain/ns/shop/sa/default"]`), "yes /a; no out /a"},
		{true, "DENY: " + from(`notPrincipals: ["cluster.local/ns/shop/*"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`principals: ["*"], notPrincipals: ["*/sa/default"]`), "no /a; no out /a"},
		{false, "ALLOW: " + from(`notNamespaces: [other, "sh*x"]`), "yes /a; yes out /a"},
		{false, "ALLOW: " + from(`namespaces: ["*op", other]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`namespaces: ["s.op"]`), "no /a"},
		{true, "DENY: " + from(`namespaces: ["*"]`), "no /a; yes out /a"},
		{false, "ALLOW: " + from(`serviceAccounts: [shop/default, x]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`notServiceAccounts: [default]`), "no /a; yes out /a"},
		{true, "DENY: " + from(`serviceAccounts: [sho/default, shop/defaul]`), "yes /a; yes out /a"},
		{false, "ALLOW: " + from(`trustDomains: [old.domain]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`notTrustDomains: [old.domain]`), "no /a; yes out /a"},
		{false, "ALLOW: " + from(`ipBlocks: [10.244.1.0/30, 192.0.2.1]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`ipBlocks: [10.244.9.7/24]`), "no /a; yes out /a"},
		{false, "ALLOW: " + from(`ipBlocks: [0.0.0.0/0]`), "yes /a; yes out /a"},
		{false, "ALLOW: " + from(`ipBlocks: ["::/0"]`), "no /a; no out /a"},
		{true, "DENY: " + from(`notIpBlocks: [10.244.1.1/32, "2001:db8::/32"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`ipBlocks: [10.244.0.0/16], notIpBlocks: [10.244.9.0/24]`), "yes /a; no out /a"},
		{false, "ALLOW: " + from(`remoteIpBlocks: [203.0.113.0/24]`), "no out /a; yes out /a {x-forwarded-for: 203.0.113.7}; " +
			"no out /a {x-forwarded-for: 198.51.100.7}; no out /a {x-forwarded-for: 203.0.113.7 198.51.100.7}"},
		{true, "DENY: " + from(`notRemoteIpBlocks: [203.0.113.0/24]`), "no out /a; yes out /a {x-forwarded-for: 203.0.113.7}"},
		{false, "ALLOW: " + from(`ipBlocks: [203.0.113.0/24]`), "no out /a {x-forwarded-for: 203.0.113.7}"},
		{true, "DENY: " + from(`remoteIpBlocks: ["2001:db8::/32"]`), "yes out /a; no out /a {x-forwarded-for: 2001:db8::1}"},
		{false, "ALLOW: " + to(`paths: ["P/*"]`) + `, from: [{source: {namespaces: [shop]}}, {source: {ipBlocks: [10.244.9.1]}}]`,
			"yes /a; yes out /a"},
		{false, "ALLOW: " + from(`namespaces: [shop], ipBlocks: [10.244.9.1]`), "no /a; no out /a"},
	}
}

// conditionForms are about conditions.
func conditionForms() []policyForm {
	return []policyForm{
		{false, "ALLOW: " + when("request.headers[X-User]", `values: [bob]`),
			"yes /a {x-user: bob}; yes /a {X-USER: bob}; no /a {x-user: Bob}; no /a {x-user: eve}; no /a"},
		{false, "ALLOW: " + when("request.headers[x-user]", `values: ["b*", "*x", "e.e"]`),
			"yes /a {x-user: bob}; yes /a {x-user: max}; no /a {x-user: eve}; yes /a {x-user: e.e}; no /a"},
		{false, "ALLOW: " + when("request.headers[x-user]", `values: ["*"]`), "yes /a {x-user: any}; no /a"},
		{true, "DENY: " + when("request.headers[x-user]", `notValues: ["*"]`), "yes /a {x-user: any}; no /a"},
		{true, "DENY: " + when("request.headers[x-user]", `values: [bob], notValues: ["b*"]`), "yes /a {x-user: bob}; yes /a"},
		{false, "ALLOW: " + when("request.headers[x_odd.name]", `values: ["a+b(c)"]`),
			"yes /a {x_odd.name: a+b(c)}; no /a {x_odd.name: aab(c)}"},
		{false, "ALLOW: " + when("request.headers[:method]", `values: [PUT]`), "no /a; yes PUT /a"},
		{false, "ALLOW: " + when("request.headers[user-agent]", `values: ["Go-http-client/*"]`), "yes /a; no /a {user-agent: curl}"},
		{false, "ALLOW: " + when("source.ip", `values: [10.244.1.1, 10.244.2.0/24]`), "yes /a; no out /a"},
		{true, "DENY: " + when("source.ip", `notValues: [10.244.1.0/24]`), "yes /a; no out /a"},
		{false, "ALLOW: " + when("remote.ip", `values: [203.0.113.7]`), "no out /a; yes out /a {x-forwarded-for: 203.0.113.7}"},
		{false, "ALLOW: " + when("source.namespace", `notValues: [shop]`), "no /a; yes out /a"},
		{true, "DENY: " + when("source.principal", `values: ["old.domain/ns/shop/sa/default"]`), "no /a; yes out /a"},
		{true, "DENY: " + when("source.serviceAccount", `notValues: [shop/default]`), "yes /a; no out /a"},
		{false, "ALLOW: " + when("source.trustDomain", `values: ["*.domain", cluster.local]`), "yes /a; no out /a"},
		{false, "ALLOW: " + when("destination.ip", `values: [10.244.4.0/24]`), "yes /a; yes out /a"},
		{true, "DENY: " + when("destination.ip", `notValues: [10.244.4.1]`), "yes /a; yes out /a"},
		{false, "ALLOW: " + when("destination.port", `values: ["8080"], notValues: ["8081"]`), "yes out /a; no out /a {port: 8081}"},
		{true, "DENY: " + when("destination.port", `notValues: ["8080", "8081"]`),
			"yes out /a; yes out /a {port: 8081}; no out /a {port: 8090}"},
		{false, "ALLOW: " + when("connection.sni", `values: ["outbound_.80_._.secure.shop.svc.cluster.local"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + when("connection.sni", `values: ["outbound_.80*"]`), "yes /a; no out /a"},
		{true, "DENY: " + when("connection.sni", `notValues: ["*.local"]`), "yes /a; no out /a"},
		{false, "ALLOW: " + when("experimental.envoy.filters.http.nothing[key]", `values: [x]`), "no /a"},
		{true, "DENY: " + when("experimental.envoy.filters.http.nothing[key]", `notValues: ["[x]"]`), "no /a"},
		{true, "DENY: " + when("experimental.envoy.filters.http.nothing[key]", `values: ["*"]`), "yes /a"},
		{false, "ALLOW: " + to(`paths: ["P/*"]`) + `, when: [{key: source.namespace, values: [shop]}, {key: "request.headers[x-user]", values: [bob]}]`,
			"yes /a {x-user: bob}; no /a; no out /a {x-user: bob}"},
	}
}

// tokenForms are about tokens: T1 of issuer https://issuer is bob's, for web, of groups users and admin and of the
// scopes read and write; T2 of https://second is eve's, without an audience.
func tokenForms() []policyForm {
	const one, two = "{authorization: Bearer <T1>}", "{x-second: <T2>}"
	forms := []policyForm{
		{true, "DENY: " + from(`notRequestPrincipals: ["*"]`), "no /a; yes /a %1; yes /a %2"},
		{false, "ALLOW: " + from(`requestPrincipals: ["https://issuer/bob", "https://second/*"]`), "no /a; yes /a %1; yes /a %2"},
		{false, "ALLOW: " + from(`requestPrincipals: ["*/bob"]`), "yes /a %1; no /a %2"},
		{false, "ALLOW: " + from(`requestPrincipals: ["*eve"]`), "no /a %1; yes /a %2"},
		{false, "ALLOW: " + from(`requestPrincipals: ["https://issuer*"]`), "no /a %1"}, // an issuer is named whole
		{false, "ALLOW: " + from(`requestPrincipals: ["https://*"]`), "no /a %1; no /a %2"},
		{false, "ALLOW: " + from(`requestPrincipals: ["*"], notRequestPrincipals: ["https://issuer/*"]`), "no /a %1; yes /a %2"},
		{false, "ALLOW: " + when("request.auth.principal", `values: ["https://issuer/bob"]`), "yes /a %1; no /a %2; no /a"},
		{true, "DENY: " + when("request.auth.principal", `notValues: ["https://issuer/bob"]`), "yes /a %1; no /a %2; no /a"},
		{false, "ALLOW: " + when("request.auth.audiences", `values: [web, other]`), "yes /a %1; no /a %2; no /a"},
		{true, "DENY: " + when("request.auth.audiences", `notValues: [web]`), "yes /a %1; no /a %2; no /a"},
		{false, "ALLOW: " + when("request.auth.presenter", `values: ["cli*"]`), "yes /a %1; no /a"},
		{true, "DENY: " + when("request.auth.presenter", `notValues: [client]`), "yes /a %1; no /a"},
		{false, "ALLOW: " + when("request.auth.claims[groups]", `values: ["adm*"]`), "yes /a %1; no /a"},
		{false, "ALLOW: " + when("request.auth.claims[groups]", `values: [other, "*s"]`), "yes /a %1; no /a"},
		{false, "ALLOW: " + when("request.auth.claims[groups]", `values: [adm]`), "no /a %1"},
		{true, "DENY: " + when("request.auth.claims[groups]", `notValues: [admin]`), "yes /a %1; no /a"},
		{false, "ALLOW: " + when("request.auth.claims[realm][role]", `values: [admin]`), "yes /a %1; no /a %2; no /a"},
		{false, "ALLOW: " + when("request.auth.claims[realm]", `values: [admin]`), "no /a %1"},
		{false, "ALLOW: " + when("request.auth.claims[realm][role][x]", `values: ["*"]`), "no /a %1"},
		{false, "ALLOW: " + when("request.auth.claims[scope]", `values: [read]`), "yes /a %1; no /a"},
		{true, "DENY: " + when("request.auth.claims[scope]", `values: [write]`), "no /a %1; yes /a"},
		{false, "ALLOW: " + when("request.auth.claims[sub]", `values: ["*"]`), "yes /a %1; yes /a %2; no /a"},
		{false, "ALLOW: " + when("request.auth.claims[iss]", `values: ["https://second"]`), "no /a %1; yes /a %2"},
		{false, "ALLOW: " + when("request.auth.claims[dotted.name]", `values: ["yes"]`), "yes /a %1"},
		{false, "ALLOW: " + when("request.auth.claims[number]", `values: ["7"]`), "no /a %1"}, // numbers are no texts
	}
	for i := range forms {
		forms[i].asks = strings.NewReplacer("%1", one, "%2", two).Replace(forms[i].asks)
	}
	return forms
}

// joinedForms are several policies of one path: who denies wins, one that allows is enough, and those that audit or are
// tried decide nothing.
func joinedForms() []policyForm {
	const web = `paths: ["P/*"]`
	return []policyForm{
		{true, "DENY: " + below(`methods: [POST]`) + " | DENY: " + below(`methods: [PUT]`), "yes /a; no POST /a; no PUT /a"},
		{false, "ALLOW: " + below(`methods: [POST]`) + " | ALLOW: " + below(`methods: [PUT]`), "no /a; yes POST /a; yes PUT /a"},
		{false, "ALLOW: " + below(`methods: [POST]`) + "; " + below(`methods: [PUT]`), "no /a; yes POST /a; yes PUT /a"},
		{true, "DENY: " + below(`methods: [POST]`) + "; " + below(`methods: [PUT]`), "yes /a; no POST /a; no PUT /a"},
		{false, "ALLOW: " + to(web) + " | DENY: " + to(web), "no /a; no out /a"},
		{false, "ALLOW root: " + below(`methods: [POST]`), "no /a; yes POST /a"},
		{true, "DENY root: " + below(`methods: [POST]`), "yes /a; no POST /a"},
		{false, "ALLOW: " + to(web) + " | DENY root: " + below(`methods: [POST]`) + " | DENY: " + below(`methods: [PUT]`),
			"yes /a; no POST /a; no PUT /a"},
		{false, "ALLOW root: " + below(`methods: [POST]`) + " | ALLOW: " + below(`methods: [PUT]`), "no /a; yes POST /a; yes PUT /a"},
		{false, "AUDIT: " + to(web), "no /a"},
		{true, "AUDIT: " + to(web), "yes /a; yes out /a"},
		{true, "AUDIT: " + to(web) + " | DENY: " + below(`methods: [POST]`), "yes /a; no POST /a"},
		{true, "DENY dry: " + to(web), "yes /a; yes out /a"},
		{false, "ALLOW dry: " + to(web), "no /a; no out /a"},
		{true, "DENY dry: " + to(web) + " | DENY: " + below(`methods: [POST]`), "yes /a; no POST /a"},
		{false, "ALLOW dry: " + to(web) + " | ALLOW: " + below(`methods: [POST]`), "no /a; yes POST /a"},
		{true, "DENY root dry: " + to(web), "yes /a"},
	}
}

// bytesForms are about ports of bytes of the client's pod, which the other calls: what asks for requests allows nothing
// there, and denies no less.
func bytesForms() []policyForm {
	return []policyForm{
		{false, "ALLOW: " + atPort(""), "yes /; yes out /"},
		{false, "ALLOW: " + atPort(`, methods: [GET]`), "no /; no out /"},
		{false, "ALLOW: " + atPort(`, paths: ["/*"]`), "no out /"},
		{false, "ALLOW: " + atPort(`, hosts: ["*"]`), "no out /"},
		{false, "ALLOW: " + atPort(`, notMethods: [POST]`), "no out /"},
		{false, "ALLOW: " + atPort(`, notPaths: [/x]`), "no out /"},
		{false, "ALLOW: " + atPort(`, paths: ["/{**}"]`), "no out /"},
		{false, "ALLOW: " + atPort("") + `, from: [{source: {requestPrincipals: ["*"]}}]`, "no out /"},
		{false, "ALLOW: " + atPort("") + `, from: [{source: {notRequestPrincipals: ["*"]}}]`, "no out /"},
		{false, "ALLOW: " + atPort("") + `, when: [{key: "request.headers[x]", notValues: [z]}]`, "no out /"},
		{false, "ALLOW: " + atPort("") + `, when: [{key: "request.auth.claims[x]", notValues: [z]}]`, "no out /"},
		{false, "ALLOW: " + atPort("") + "; " + atPort(`, methods: [GET]`), "yes out /"},
		{false, `ALLOW: to: [{operation: {ports: ["PORT"]}}, {operation: {ports: ["PORT"], methods: [GET]}}]`, "no out /"},
		{false, "ALLOW: " + atPort("") + `, from: [{source: {namespaces: [shop]}}]`, "yes /; no out /"},
		{false, "ALLOW: " + atPort("") + `, from: [{source: {principals: ["*/sa/default"]}}]`, "yes /; no out /"},
		{false, "ALLOW: " + atPort("") + `, from: [{source: {ipBlocks: [10.244.9.0/24]}}]`, "no /; yes out /"},
		{false, "ALLOW: " + atPort("") + `, from: [{source: {remoteIpBlocks: [10.244.9.0/24]}}]`, "no /; yes out /"},
		{false, "ALLOW: " + atPort("") + `, when: [{key: destination.ip, values: [10.244.1.1]}]`, "yes /; yes out /"},
		{false, "ALLOW: " + atPort("") + `, when: [{key: connection.sni, values: ["outbound*"]}]`, "yes /; no out /"},
		{true, "DENY: " + atPort(`, methods: [POST]`), "no /; no out /"},
		{true, "DENY: " + atPort(`, paths: [/nowhere]`), "no out /"},
		{true, "DENY: " + atPort(`, notPaths: ["/*"]`), "no out /"},
		{true, "DENY: " + atPort("") + `, from: [{source: {requestPrincipals: ["*"]}}]`, "no out /"},
		{true, "DENY: " + atPort("") + `, from: [{source: {requestPrincipals: ["*"], namespaces: [shop]}}]`, "no /; yes out /"},
		{true, "DENY: " + atPort("") + `, from: [{source: {notNamespaces: [shop]}}]`, "yes /; no out /"},
		{true, "DENY: " + atPort("") + `, when: [{key: "request.headers[x]", values: [z]}, {key: source.namespace, values: [shop]}]`,
			"no /; yes out /"},
		{true, "DENY: " + atPort("") + `, from: [{source: {ipBlocks: ["::/0"]}}]`, "yes /; yes out /"},
		{true, "DENY dry: " + atPort(""), "yes /; yes out /"},
		{true, "AUDIT: " + atPort(""), "yes /; yes out /"},
		{false, "AUDIT: " + atPort(""), "no /; no out /"},
		{false, "ALLOW dry: " + atPort(""), "no out /"},
		{true, "DENY root: " + atPort(`, methods: [POST]`), "no out /"},
	}
}
