package gen

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// tokens returns the filter that checks tokens. A request without a token passes it; one with a token that is not valid
// does not.
func tokens(k HTTPConnectionManagerKey) *anypb.Any {
	rules := tokenRules(k.Access.Policies)
	out := &jwtpb.JwtAuthentication{Providers: map[string]*jwtpb.JwtProvider{}, BypassCorsPreflight: true}
	var any, all []*jwtpb.JwtRequirement
	for i, r := range rules {
		name := fmt.Sprintf("origins-%d", i)
		out.Providers[name] = tokenProvider(r, k.Class == GatewayListener)
		any = append(any, providerRequired(name))
		all = append(all, anyRequired(providerRequired(name), missingAllowed()))
	}
	// With several issuers one of them is enough where their tokens stand in one place; else each token that is there
	// must be valid.
	last := missingAllowed()
	if len(rules) > 1 {
		last = &jwtpb.JwtRequirement{RequiresType: &jwtpb.JwtRequirement_RequiresAll{
			RequiresAll: &jwtpb.JwtRequirementAndList{Requirements: all}}}
	}
	out.Rules = []*jwtpb.RequirementRule{{
		Match: &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
		RequirementType: &jwtpb.RequirementRule_Requires{
			Requires: anyRequired(append(any, last)...)},
	}}
	return anySorted(out)
}

// tokenRules returns the rules of all policies, in the order of their issuers.
func tokenRules(p value.Policies) (rules []value.TokenRule) {
	for tokens := range p.Tokens.All() {
		rules = append(rules, tokens.Rules...)
	}
	slices.SortStableFunc(rules, func(a, b value.TokenRule) int { return strings.Compare(a.Issuer, b.Issuer) })
	return rules
}

// tokenProvider checks the tokens of one issuer. Where routes may ask for claims, the route is chosen again after the
// token is known.
func tokenProvider(r value.TokenRule, routing bool) *jwtpb.JwtProvider {
	p := &jwtpb.JwtProvider{
		Issuer: r.Issuer, Audiences: r.Audiences, Forward: r.Forward, ForwardPayloadHeader: r.PayloadHeader,
		PayloadInMetadata: tokenPayload, FromParams: r.Params, FromCookies: r.Cookies, ClearRouteCache: routing,
		NormalizePayloadInMetadata: &jwtpb.JwtProvider_NormalizePayload{
			SpaceDelimitedClaims: spaceDelimited(r.SpaceDelimited)},
		JwksSourceSpecifier: &jwtpb.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
			Specifier: &corev3.DataSource_InlineString{InlineString: keysOf(r)}}},
	}
	for _, h := range r.Headers {
		p.FromHeaders = append(p.FromHeaders, &jwtpb.JwtHeader{Name: h.Name, ValuePrefix: h.Prefix})
	}
	for _, c := range r.ClaimHeaders {
		p.ClaimToHeaders = append(p.ClaimToHeaders, &jwtpb.JwtClaimToHeader{HeaderName: c.Header, ClaimName: c.Claim})
	}
	return p
}

// spaceDelimited returns the usual claims that are lists with spaces between, and further ones, in order.
func spaceDelimited(more []string) []string {
	out := append([]string{"permission", "scope"}, more...)
	slices.Sort(out)
	return slices.Compact(out)
}

// keysOf returns the keys by which tokens are checked. Envoy takes no empty set, so that where none is known there
// stands a key that signs nothing: a point of an elliptic curve of which nobody knows the secret, for its x is the
// SHA-256 of "no key 1".
func keysOf(r value.TokenRule) string {
	if r.Keys != "" {
		return r.Keys
	}
	return `{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"none",` +
		`"x":"HT4qsIkYvWn8IoC0B9JFriWgzShALVo4X4a96kUBtK0",` +
		`"y":"bFXFFCBRzMOo-PYsYncBmfZBSvk_Eq2Hp8aFmyZtYrA"}]}`
}

func providerRequired(name string) *jwtpb.JwtRequirement {
	return &jwtpb.JwtRequirement{RequiresType: &jwtpb.JwtRequirement_ProviderName{ProviderName: name}}
}

func missingAllowed() *jwtpb.JwtRequirement {
	return &jwtpb.JwtRequirement{RequiresType: &jwtpb.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}}
}

func anyRequired(list ...*jwtpb.JwtRequirement) *jwtpb.JwtRequirement {
	return &jwtpb.JwtRequirement{RequiresType: &jwtpb.JwtRequirement_RequiresAny{
		RequiresAny: &jwtpb.JwtRequirementOrList{Requirements: list}}}
}
