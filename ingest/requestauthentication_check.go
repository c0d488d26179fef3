package ingest

import (
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
	c.that(r.GetIssuer() != "" || r.GetJwksUri() != "", at+".issuer",
		"expected an issuer, for no jwksUri says where the keys are")
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
		c.that(isWebURL(uri), at+".jwksUri", "expected a URL of HTTP or HTTPS, got %q", uri)
	}
	if keys := r.GetJwks(); keys != "" {
		err := checkKeySet(keys)
		c.that(err == nil, at+".jwks", "%v", err)
	}
	c.positive(at+".timeout", r.GetTimeout())
}

// filled checks that no text of a list is empty.
func (c *check) filled(at string, texts []string) {
	for i, t := range texts {
		c.that(t != "", item(at, i), "expected a text, got an empty one")
		c.line(item(at, i), t)
	}
}
