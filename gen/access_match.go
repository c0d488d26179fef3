package gen

import (
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func metadataMatch(m *matcherpb.ValueMatcher, filter string, path ...string) *matcherpb.MetadataMatcher {
	out := &matcherpb.MetadataMatcher{Filter: filter, Value: m}
	for _, p := range path {
		out.Path = append(out.Path, &matcherpb.MetadataMatcher_PathSegment{
			Segment: &matcherpb.MetadataMatcher_PathSegment_Key{Key: p}})
	}
	return out
}

func orValue(list []*matcherpb.ValueMatcher) *matcherpb.ValueMatcher {
	if len(list) == 1 {
		return list[0]
	}
	return &matcherpb.ValueMatcher{MatchPattern: &matcherpb.ValueMatcher_OrMatch{
		OrMatch: &matcherpb.OrMatcher{ValueMatchers: list}}}
}

// textOrList matches what m does, and lists that have such a member.
func textOrList(m *matcherpb.ValueMatcher) *matcherpb.ValueMatcher {
	return orValue([]*matcherpb.ValueMatcher{inList(m), m})
}

func stringValue(m *matcherpb.StringMatcher) *matcherpb.ValueMatcher {
	return &matcherpb.ValueMatcher{MatchPattern: &matcherpb.ValueMatcher_StringMatch{StringMatch: m}}
}

func inList(m *matcherpb.ValueMatcher) *matcherpb.ValueMatcher {
	return &matcherpb.ValueMatcher{MatchPattern: &matcherpb.ValueMatcher_ListMatch{ListMatch: &matcherpb.ListMatcher{
		MatchPattern: &matcherpb.ListMatcher_OneOf{OneOf: m}}}}
}

// affix matches a text that is as v says, which may begin or end in "*"; "*" alone asks for any that is not empty.
func affix(v string) *matcherpb.StringMatcher {
	if v == "*" {
		return regexMatch(".+")
	}
	if rest, ok := strings.CutPrefix(v, "*"); ok {
		return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Suffix{Suffix: rest}}
	}
	if rest, ok := strings.CutSuffix(v, "*"); ok {
		return prefixMatch(rest)
	}
	return exactMatch(v)
}

func prefixMatch(v string) *matcherpb.StringMatcher {
	return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Prefix{Prefix: v}}
}

func exactMatch(v string) *matcherpb.StringMatcher {
	return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Exact{Exact: v}}
}

func regexMatch(expression string) *matcherpb.StringMatcher {
	return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_SafeRegex{
		SafeRegex: &matcherpb.RegexMatcher{Regex: expression}}}
}

// headerMatch matches a header that is as v says; "*" asks for its presence.
func headerMatch(name, v string) *routepb.HeaderMatcher {
	if v == "*" {
		return &routepb.HeaderMatcher{Name: name,
			HeaderMatchSpecifier: &routepb.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routepb.HeaderMatcher{Name: name,
		HeaderMatchSpecifier: &routepb.HeaderMatcher_StringMatch{StringMatch: affix(v)}}
}

// addressRange returns an address or a range, which the door has seen to be one.
func addressRange(v string) *corev3.CidrRange {
	p, err := netip.ParsePrefix(v)
	if a, e := netip.ParseAddr(v); e == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return &corev3.CidrRange{}
	}
	return &corev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits()))}
}

func authenticated(m *matcherpb.StringMatcher) *rbacpb.Principal {
	return &rbacpb.Principal{Identifier: &rbacpb.Principal_Authenticated_{
		Authenticated: &rbacpb.Principal_Authenticated{PrincipalName: m}}}
}

func orPrincipals(list []*rbacpb.Principal) *rbacpb.Principal {
	return &rbacpb.Principal{Identifier: &rbacpb.Principal_OrIds{OrIds: &rbacpb.Principal_Set{Ids: list}}}
}

func anybody() *rbacpb.Principal {
	return &rbacpb.Principal{Identifier: &rbacpb.Principal_Any{Any: true}}
}

func notPrincipal(p *rbacpb.Principal) *rbacpb.Principal {
	return &rbacpb.Principal{Identifier: &rbacpb.Principal_NotId{NotId: p}}
}

func anything() *rbacpb.Permission {
	return &rbacpb.Permission{Rule: &rbacpb.Permission_Any{Any: true}}
}

func notPermission(p *rbacpb.Permission) *rbacpb.Permission {
	return &rbacpb.Permission{Rule: &rbacpb.Permission_NotRule{NotRule: p}}
}
