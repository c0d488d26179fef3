package gen

import (
	"cmp"
	"maps"
	"slices"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// anyPath matches every request.
func anyPath() *routepb.RouteMatch {
	return &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}}
}

// matchesAll reports whether a match lets every request through.
func matchesAll(m *routepb.RouteMatch) bool {
	all := false
	switch p := m.GetPathSpecifier().(type) {
	case *routepb.RouteMatch_Prefix:
		all = p.Prefix == "/"
	case *routepb.RouteMatch_SafeRegex:
		all = p.SafeRegex.GetRegex() == ".*"
	}
	return all && len(m.GetHeaders()) == 0 && len(m.GetQueryParameters()) == 0 && len(m.GetDynamicMetadata()) == 0
}

// routeMatch is what a request must be like for a match; nil matches everything. Who the client is was decided before.
func routeMatch(in *networking.HTTPMatchRequest) *routepb.RouteMatch {
	out := anyPath()
	if in == nil {
		return out
	}
	switch p := in.GetUri().GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		out.PathSpecifier = &routepb.RouteMatch_Path{Path: p.Exact}
	case *networking.StringMatch_Prefix:
		out.PathSpecifier = &routepb.RouteMatch_Prefix{Prefix: p.Prefix}
	case *networking.StringMatch_Regex:
		out.PathSpecifier = &routepb.RouteMatch_SafeRegex{SafeRegex: &matcherpb.RegexMatcher{Regex: p.Regex}}
	}
	out.CaseSensitive = wrapperspb.Bool(!in.GetIgnoreUriCase())
	out.Headers = headerMatchers(in)
	for _, name := range slices.Sorted(maps.Keys(in.GetQueryParams())) {
		out.QueryParameters = append(out.QueryParameters, queryMatcher(name, in.GetQueryParams()[name]))
	}
	return out
}

// headerMatchers are the matchers of headers that must and that must not be there, by name, then those of method,
// authority and scheme.
func headerMatchers(in *networking.HTTPMatchRequest) []*routepb.HeaderMatcher {
	var out []*routepb.HeaderMatcher
	for _, name := range slices.Sorted(maps.Keys(in.GetHeaders())) {
		out = append(out, headerMatcher(name, in.GetHeaders()[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(in.GetWithoutHeaders())) {
		s := in.GetWithoutHeaders()[name]
		m := headerMatcher(name, s)
		m.InvertMatch = true
		m.TreatMissingHeaderAsEmpty = !presence(s)
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b *routepb.HeaderMatcher) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, pseudo := range []struct {
		name  string
		match *networking.StringMatch
	}{{":method", in.GetMethod()}, {":authority", in.GetAuthority()}, {":scheme", in.GetScheme()}} {
		if pseudo.match != nil {
			out = append(out, headerMatcher(pseudo.name, pseudo.match))
		}
	}
	return out
}

func headerMatcher(name string, in *networking.StringMatch) *routepb.HeaderMatcher {
	out := &routepb.HeaderMatcher{Name: name}
	if presence(in) {
		out.HeaderMatchSpecifier = &routepb.HeaderMatcher_PresentMatch{PresentMatch: true}
	} else {
		out.HeaderMatchSpecifier = &routepb.HeaderMatcher_StringMatch{StringMatch: stringMatcher(in)}
	}
	return out
}

func queryMatcher(name string, in *networking.StringMatch) *routepb.QueryParameterMatcher {
	out := &routepb.QueryParameterMatcher{Name: name}
	if presence(in) {
		out.QueryParameterMatchSpecifier = &routepb.QueryParameterMatcher_PresentMatch{PresentMatch: true}
	} else {
		out.QueryParameterMatchSpecifier = &routepb.QueryParameterMatcher_StringMatch{StringMatch: stringMatcher(in)}
	}
	return out
}

// presence reports whether a match asks only that there is a value. The regex "*" does, though it is none.
func presence(in *networking.StringMatch) bool {
	switch m := in.GetMatchType().(type) {
	case nil:
		return true
	case *networking.StringMatch_Regex:
		return m.Regex == "*"
	}
	return false
}

// stringMatcher is in as Envoy has it; nil for no match.
func stringMatcher(in *networking.StringMatch) *matcherpb.StringMatcher {
	switch m := in.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Exact{Exact: m.Exact}}
	case *networking.StringMatch_Prefix:
		return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Prefix{Prefix: m.Prefix}}
	case *networking.StringMatch_Regex:
		return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_SafeRegex{SafeRegex: &matcherpb.RegexMatcher{Regex: m.Regex}}}
	}
	return nil
}
