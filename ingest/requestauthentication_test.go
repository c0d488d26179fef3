package ingest

import "testing"

// TestRequestAuthenticationVerdicts: what istiod's webhook and CRD refuse is refused, with the field; so is what Envoy
// would refuse.
func TestRequestAuthenticationVerdicts(t *testing.T) {
	rule := func(s string) string { return "{jwtRules: [{" + s + "}]}" }
	const keys = `jwks: '{"keys":[{"kty":"oct","k":"AAEC"}]}'`
	for spec, field := range map[string]string{
		`{}`: "", rule("issuer: a"): "", rule("issuer: a, " + keys): "",
		rule("audiences: [a]"):                                            "spec.jwtRules[0].issuer",
		rule("audiences: [a], " + keys):                                   "spec.jwtRules[0].issuer",
		rule("audiences: [a], jwksUri: 'https://x/y'"):                    "",
		rule(`issuer: ""`):                                                "spec.jwtRules[0].issuer",
		rule(`issuer: a, audiences: [""]`):                                "spec.jwtRules[0].audiences[0]",
		rule("issuer: a, jwks: x"):                                        "spec.jwtRules[0].jwks",
		rule(`issuer: a, jwks: '{"keys":[]}'`):                            "spec.jwtRules[0].jwks",
		rule(`issuer: a, jwks: '{"keys":[{"k":"x"}]}'`):                   "spec.jwtRules[0].jwks",
		rule("issuer: a, jwksUri: x"):                                     "spec.jwtRules[0].jwksUri",
		rule("issuer: a, jwksUri: 'ftp://x/y'"):                           "spec.jwtRules[0].jwksUri",
		rule("issuer: a, jwksUri: 'https://x/y'"):                         "",
		rule("issuer: a, jwksUri: 'https://x/y', " + keys):                "spec.jwtRules[0].jwksUri",
		rule("issuer: a, fromHeaders: [{name: 'a b'}]"):                   "spec.jwtRules[0].fromHeaders[0].name",
		rule("issuer: a, fromParams: ['']"):                               "spec.jwtRules[0].fromParams[0]",
		rule("issuer: a, fromCookies: ['']"):                              "spec.jwtRules[0].fromCookies[0]",
		rule("issuer: a, outputPayloadToHeader: 'a b'"):                   "spec.jwtRules[0].outputPayloadToHeader",
		rule("issuer: a, outputClaimToHeaders: [{header: x}]"):            "spec.jwtRules[0].outputClaimToHeaders[0].claim",
		rule("issuer: a, outputClaimToHeaders: [{claim: x}]"):             "spec.jwtRules[0].outputClaimToHeaders[0].header",
		rule("issuer: a, timeout: 0s"):                                    "spec.jwtRules[0].timeout",
		`{selector: {}, targetRefs: [{kind: Gateway, name: g}]}`:          "spec.targetRefs",
		`{selector: {matchLabels: {"a*": web}}, jwtRules: [{issuer: a}]}`: "spec.selector.matchLabels.a*",
	} {
		s := NewStore(newKeeper(), quiet(t), "kube")
		s.Synced("kube")
		s.Apply(decode(t, "kube", "kind: RequestAuthentication\nmetadata: {name: x, namespace: a}\nspec: "+spec))
		got := ""
		if r := s.Rejections(); len(r) > 0 {
			got = r[0].Field
		}
		if got != field {
			t.Errorf("%s is refused for %q, want %q", spec, got, field)
		}
	}
}
