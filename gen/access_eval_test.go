package gen_test

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	templatepb "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// asked is what an Envoy knows of a request, or of a connection where method is empty.
type asked struct {
	principal, source, remote, destination string
	port                                   uint32
	sni, method, host, path                string
	headers                                map[string]string
	claims                                 map[string]any
}

// decide is what the filters of a chain make of a request: whether it passes.
func decide(t testing.TB, chain *listenerpb.FilterChain, a asked) bool {
	t.Helper()
	if a.method != "" {
		for _, f := range httpManager(t, chain).GetHttpFilters() {
			m := &httprbacpb.RBAC{}
			if f.GetTypedConfig().MessageIs(m) {
				if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
					t.Fatal(err)
				}
				if m.Rules != nil && !passes(t, m.Rules, a) {
					return false
				}
			}
		}
		return true
	}
	for _, f := range chain.GetFilters() {
		m := &tcprbacpb.RBAC{}
		if f.GetTypedConfig().MessageIs(m) {
			if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			if m.Rules != nil && !passes(t, m.Rules, a) {
				return false
			}
		}
	}
	return true
}

// passes evaluates rules as Envoy's documentation says.
func passes(t testing.TB, r *rbacpb.RBAC, a asked) bool {
	matched := false
	for _, p := range r.GetPolicies() {
		permission, principal := false, false
		for _, one := range p.GetPermissions() {
			permission = permission || permits(t, one, a)
		}
		for _, one := range p.GetPrincipals() {
			principal = principal || identifies(t, one, a)
		}
		matched = matched || permission && principal
	}
	switch r.GetAction() {
	case rbacpb.RBAC_ALLOW:
		return matched
	case rbacpb.RBAC_DENY:
		return !matched
	}
	return true
}

func permits(t testing.TB, p *rbacpb.Permission, a asked) bool {
	switch r := p.GetRule().(type) {
	case *rbacpb.Permission_AndRules:
		for _, one := range r.AndRules.GetRules() {
			if !permits(t, one, a) {
				return false
			}
		}
		return true
	case *rbacpb.Permission_OrRules:
		for _, one := range r.OrRules.GetRules() {
			if permits(t, one, a) {
				return true
			}
		}
		return false
	case *rbacpb.Permission_NotRule:
		return !permits(t, r.NotRule, a)
	case *rbacpb.Permission_Any:
		return true
	case *rbacpb.Permission_Header:
		v := map[string]string{":method": a.method, ":authority": a.host}[r.Header.GetName()]
		return r.Header.GetPresentMatch() && v != "" || matches(t, r.Header.GetStringMatch(), v)
	case *rbacpb.Permission_UrlPath:
		return matches(t, r.UrlPath.GetPath(), a.path)
	case *rbacpb.Permission_UriTemplate:
		m := &templatepb.UriTemplateMatchConfig{}
		if err := r.UriTemplate.GetTypedConfig().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		e := strings.NewReplacer("**", `[\w/]*`, "*", `\w+`).Replace(m.GetPathTemplate())
		return regexp.MustCompile("^" + e + "$").MatchString(a.path)
	case *rbacpb.Permission_DestinationIp:
		return within(t, r.DestinationIp, a.destination)
	case *rbacpb.Permission_DestinationPort:
		return r.DestinationPort == a.port
	case *rbacpb.Permission_RequestedServerName:
		return matches(t, r.RequestedServerName, a.sni)
	}
	t.Fatalf("permission %v", p)
	return false
}

func identifies(t testing.TB, p *rbacpb.Principal, a asked) bool {
	switch r := p.GetIdentifier().(type) {
	case *rbacpb.Principal_AndIds:
		for _, one := range r.AndIds.GetIds() {
			if !identifies(t, one, a) {
				return false
			}
		}
		return true
	case *rbacpb.Principal_OrIds:
		for _, one := range r.OrIds.GetIds() {
			if identifies(t, one, a) {
				return true
			}
		}
		return false
	case *rbacpb.Principal_NotId:
		return !identifies(t, r.NotId, a)
	case *rbacpb.Principal_Any:
		return true
	case *rbacpb.Principal_Authenticated_:
		return a.principal != "" && matches(t, r.Authenticated.GetPrincipalName(), "spiffe://"+a.principal)
	case *rbacpb.Principal_DirectRemoteIp:
		return within(t, r.DirectRemoteIp, a.source)
	case *rbacpb.Principal_RemoteIp:
		return within(t, r.RemoteIp, a.remote)
	case *rbacpb.Principal_Header:
		v, ok := a.headers[r.Header.GetName()]
		return ok && (r.Header.GetPresentMatch() || matches(t, r.Header.GetStringMatch(), v))
	case *rbacpb.Principal_Metadata:
		//lint:ignore SA1019 what is sent
		m := r.Metadata
		var v any = map[string]any{"payload": a.claims}
		for _, s := range m.GetPath() {
			inner, _ := v.(map[string]any)
			v = inner[s.GetKey()]
		}
		return valueMatches(t, m.GetValue(), v)
	}
	t.Fatalf("principal %v", p)
	return false
}

func valueMatches(t testing.TB, m *matcherpb.ValueMatcher, v any) bool {
	switch r := m.GetMatchPattern().(type) {
	case *matcherpb.ValueMatcher_OrMatch:
		for _, one := range r.OrMatch.GetValueMatchers() {
			if valueMatches(t, one, v) {
				return true
			}
		}
	case *matcherpb.ValueMatcher_ListMatch:
		list, _ := v.([]any)
		for _, one := range list {
			if valueMatches(t, r.ListMatch.GetOneOf(), one) {
				return true
			}
		}
	case *matcherpb.ValueMatcher_StringMatch:
		s, ok := v.(string)
		return ok && matches(t, r.StringMatch, s)
	}
	return false
}

func matches(t testing.TB, m *matcherpb.StringMatcher, v string) bool {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	switch r := m.GetMatchPattern().(type) {
	case *matcherpb.StringMatcher_Exact:
		return fold(v) == fold(r.Exact)
	case *matcherpb.StringMatcher_Prefix:
		return strings.HasPrefix(fold(v), fold(r.Prefix))
	case *matcherpb.StringMatcher_Suffix:
		return strings.HasSuffix(fold(v), fold(r.Suffix))
	case *matcherpb.StringMatcher_Contains:
		return strings.Contains(v, r.Contains)
	case *matcherpb.StringMatcher_SafeRegex:
		return regexp.MustCompile("^(?s:" + r.SafeRegex.GetRegex() + ")$").MatchString(v)
	}
	return false
}

func within(t testing.TB, r *corev3.CidrRange, address string) bool {
	p, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		t.Fatal(err)
	}
	a, err := netip.ParseAddr(address)
	return err == nil && netip.PrefixFrom(p, int(r.GetPrefixLen().GetValue())).Contains(a)
}
