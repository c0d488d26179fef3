package gen_test

import (
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	jwtpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// tokenFilterOf returns the filter for tokens that RequestAuthentications make; nil if there is none.
func tokenFilterOf(t *testing.T, class value.Protocol, specs ...string) *jwtpb.JwtAuthentication {
	t.Helper()
	var list []*value.RequestAuthentication
	for _, text := range specs {
		spec := &security.RequestAuthentication{}
		fromYAML(t, text, spec)
		list = append(list, istio.Authentication(spec))
	}
	m := listenerMesh()
	k := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Bind: "0.0.0.0", Target: 8080, Protocol: class,
		Access: gen.AccessKey{Policies: value.Policies{Tokens: value.SequenceOf(list)}}}
	if _, faults := gen.EncodeInboundChains(k); len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, f := range httpManager(t, gen.InboundChains(k)[0]).GetHttpFilters() {
		m := &jwtpb.JwtAuthentication{}
		if f.GetTypedConfig().MessageIs(m) {
			if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	return nil
}

// TestTokensOfSeveralIssuers: the rules of all policies are in one filter, in the order of their issuers. One valid
// token is enough, none is too; one that is not valid is not.
func TestTokensOfSeveralIssuers(t *testing.T) {
	m := tokenFilterOf(t, value.HTTP, `{jwtRules: [{issuer: b, audiences: [x], forwardOriginalToken: true,
		fromHeaders: [{name: x-jwt, prefix: "Bearer "}], fromParams: [p], fromCookies: [c], outputPayloadToHeader: h,
		outputClaimToHeaders: [{header: x-sub, claim: sub}], spaceDelimitedClaims: [roles, scope]}]}`,
		`{jwtRules: [{issuer: a}]}`)
	if a, b := m.GetProviders()["origins-0"], m.GetProviders()["origins-1"]; a.GetIssuer() != "a" || b.GetIssuer() != "b" {
		t.Errorf("providers: %v", m.GetProviders())
	} else if !b.GetForward() || b.GetFromHeaders()[0].GetValuePrefix() != "Bearer " || b.GetFromCookies()[0] != "c" ||
		b.GetFromParams()[0] != "p" || b.GetForwardPayloadHeader() != "h" ||
		b.GetClaimToHeaders()[0].GetClaimName() != "sub" || b.GetClearRouteCache() ||
		!slices.Equal(b.GetNormalizePayloadInMetadata().GetSpaceDelimitedClaims(), []string{"permission", "roles", "scope"}) {
		t.Errorf("provider: %v", b)
	}
	any := m.GetRules()[0].GetRequires().GetRequiresAny().GetRequirements()
	if len(any) != 3 || any[0].GetProviderName() != "origins-0" || any[1].GetProviderName() != "origins-1" ||
		len(any[2].GetRequiresAll().GetRequirements()) != 2 {
		t.Errorf("requirements: %v", any)
	}
	for _, one := range any[2].GetRequiresAll().GetRequirements() {
		r := one.GetRequiresAny().GetRequirements()
		if len(r) != 2 || r[0].GetProviderName() == "" || r[1].GetAllowMissing() == nil {
			t.Errorf("requirement: %v", one)
		}
	}
}

// TestKeyOfNobody: where no key is known there stands one that nobody can have made: its x is a hash.
func TestKeyOfNobody(t *testing.T) {
	m := tokenFilterOf(t, value.HTTP, `{jwtRules: [{issuer: a}]}`)
	var set struct{ Keys []struct{ X, Y string } }
	text := m.GetProviders()["origins-0"].GetLocalJwks().GetInlineString()
	if err := json.Unmarshal([]byte(text), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	number := func(s string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Int).SetBytes(b)
	}
	sum := sha256.Sum256([]byte("no key 1"))
	x, y := number(set.Keys[0].X), number(set.Keys[0].Y)
	//lint:ignore SA1019 the question is about the curve itself
	if !elliptic.P256().IsOnCurve(x, y) || x.Cmp(new(big.Int).SetBytes(sum[:])) != 0 {
		t.Error("the key is none, or somebody may know its secret")
	}
}
