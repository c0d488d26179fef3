package value

import "reflect"

// KindRequestAuthentication is Istio's RequestAuthentication.
const KindRequestAuthentication Kind = "RequestAuthentication.security.istio.io"

// RequestAuthentication is a RequestAuthentication object: which tokens workloads take. Immutable.
type RequestAuthentication struct {
	Meta
	PolicyTarget
	// Rules are the issuers whose tokens are taken.
	Rules []TokenRule
}

// Kind returns KindRequestAuthentication.
func (p *RequestAuthentication) Kind() Kind { return KindRequestAuthentication }

// Object returns the key of the RequestAuthentication object.
func (p *RequestAuthentication) Object() ObjectKey { return p.Meta.Object(p.Kind()) }

// Age returns what decides which of several policies comes first.
func (p *RequestAuthentication) Age() Meta { return p.Meta }

// Equal reports whether two RequestAuthentication objects are the same.
func (p *RequestAuthentication) Equal(o *RequestAuthentication) bool {
	return p == o || reflect.DeepEqual(p, o)
}

// TokenRule says how the tokens of an issuer are found, checked and passed on. A slice without elements is nil.
type TokenRule struct {
	Issuer    string
	Audiences []string
	// Keys are the issuer's keys as a JSON Web Key Set. Without any no token is valid.
	Keys string
	// Headers, Params and Cookies are where a token may stand; the usual places where all are empty.
	Headers         []TokenHeader
	Params, Cookies []string
	// PayloadHeader gets the payload of a valid token, and ClaimHeaders some of its claims. Forward keeps the token.
	PayloadHeader string
	ClaimHeaders  []ClaimHeader
	Forward       bool
	// SpaceDelimited are claims that are lists with spaces between, beside the usual ones.
	SpaceDelimited []string
}

// TokenHeader is a header in which a token may stand, behind a prefix.
type TokenHeader struct{ Name, Prefix string }

// ClaimHeader is a header that gets a claim.
type ClaimHeader struct{ Header, Claim string }

// Policies are what a workload asks of the requests and connections that it gets. Comparable.
type Policies struct {
	// Authorization and Tokens are the policies in force, the first to look at first.
	Authorization Sequence[*AuthorizationPolicy]
	Tokens        Sequence[*RequestAuthentication]
	// Asked is the server that those of CustomAction ask.
	Asked Asked
}

// Empty reports whether there are none.
func (p Policies) Empty() bool { return p == Policies{} }

// Objects returns the policies.
func (p Policies) Objects() (out []ObjectKey) {
	for a := range p.Authorization.All() {
		out = append(out, a.Object())
	}
	for r := range p.Tokens.All() {
		out = append(out, r.Object())
	}
	return out
}
