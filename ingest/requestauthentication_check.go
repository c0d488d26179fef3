package ingest

import (
	"encoding/json"
	"net/url"

	security "istio.io/api/security/v1beta1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"
)

func checkRequestAuthentication(o *clientsec.RequestAuthentication) *problem {
	c := &check{}
	c.targets(&o.Spec)
	for i, r := range o.Spec.GetJwtRules() {
		c.tokenRule(item("spec.jwtRules", i), r)
	}
	return c.first
}

func (c *check) tokenRule(at string, r *security.JWTRule) {
	c.that(r.GetIssuer() != "", at+".issuer", "expected an issuer")
	c.line(at+".issuer", r.GetIssuer())
	c.that(r.GetJwks() == "" || r.GetJwksUri() == "", at+".jwksUri", "expected one of jwks and jwksUri")
	c.filled(at+".audiences", r.GetAudiences())
	c.filled(at+".fromParams", r.GetFromParams())
	c.filled(at+".fromCookies", r.GetFromCookies())
	c.filled(at+".spaceDelimitedClaims", r.GetSpaceDelimitedClaims())
	for i, h := range r.GetFromHeaders() {
		c.header(item(at+".fromHeaders", i)+".name", h.GetName())
		c.line(item(at+".fromHeaders", i)+".prefix", h.GetPrefix())
	}
	for i, h := range r.GetOutputClaimToHeaders() {
		c.header(item(at+".outputClaimToHeaders", i)+".header", h.GetHeader())
		c.that(h.GetClaim() != "", item(at+".outputClaimToHeaders", i)+".claim", "expected a claim")
	}
	if h := r.GetOutputPayloadToHeader(); h != "" {
		c.header(at+".outputPayloadToHeader", h)
	}
	if uri := r.GetJwksUri(); uri != "" {
		u, err := url.Parse(uri)
		c.that(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", at+".jwksUri",
			"expected a URL of HTTP or HTTPS, got %q", uri)
	}
	if keys := r.GetJwks(); keys != "" {
		c.keySet(at+".jwks", keys)
	}
	c.positive(at+".timeout", r.GetTimeout())
}

// filled takes a list of texts of which none is empty.
func (c *check) filled(at string, texts []string) {
	for i, t := range texts {
		c.that(t != "", item(at, i), "expected a text, got an empty one")
		c.line(item(at, i), t)
	}
}

// longestKeys bounds a key set, which is in every listener that checks tokens by it.
const longestKeys = 64 << 10

// keySet takes a JSON Web Key Set with keys: Envoy refuses any other.
func (c *check) keySet(at, text string) {
	c.that(len(text) <= longestKeys, at, "expected a key set of at most %d bytes, got %d", longestKeys, len(text))
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
		} `json:"keys"`
	}
	err := json.Unmarshal([]byte(text), &set)
	c.that(err == nil && len(set.Keys) > 0, at, "expected a JSON Web Key Set with at least one key")
	for _, k := range set.Keys {
		c.that(k.Type != "", at, "expected keys that tell their type (kty)")
	}
}
