package istio

import (
	security "istio.io/api/security/v1beta1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Authentication converts a RequestAuthentication, without Meta.
func Authentication(in *security.RequestAuthentication) *value.RequestAuthentication {
	return &value.RequestAuthentication{
		PolicyTarget: Target(in.GetSelector(), References(in.GetTargetRef(), in.GetTargetRefs())),
		Rules:        each(in.GetJwtRules(), tokenRule),
	}
}

func tokenRule(r *security.JWTRule) value.TokenRule {
	out := value.TokenRule{
		Issuer: r.GetIssuer(), Audiences: list(r.GetAudiences()), Keys: r.GetJwks(), Params: list(r.GetFromParams()),
		Cookies: list(r.GetFromCookies()), PayloadHeader: r.GetOutputPayloadToHeader(),
		Forward: r.GetForwardOriginalToken(), SpaceDelimited: list(r.GetSpaceDelimitedClaims()),
	}
	for _, h := range r.GetFromHeaders() {
		out.Headers = append(out.Headers, value.TokenHeader{Name: h.GetName(), Prefix: h.GetPrefix()})
	}
	for _, c := range r.GetOutputClaimToHeaders() {
		out.ClaimHeaders = append(out.ClaimHeaders, value.ClaimHeader{Header: c.GetHeader(), Claim: c.GetClaim()})
	}
	return out
}
