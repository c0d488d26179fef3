package gen

import (
	"cmp"
	"slices"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
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

// routeMatch returns what a request must be like for a match. Who the client is was decided before.
func routeMatch(in *value.HTTPMatch) *routepb.RouteMatch {
	out := anyPath()
	if p := in.Path; p != nil {
		switch p.Kind {
		case value.MatchExact:
			out.PathSpecifier = &routepb.RouteMatch_Path{Path: p.Text}
		case value.MatchPrefix:
			out.PathSpecifier = &routepb.RouteMatch_Prefix{Prefix: p.Text}
		case value.MatchRegex:
			out.PathSpecifier = &routepb.RouteMatch_SafeRegex{SafeRegex: &matcherpb.RegexMatcher{Regex: p.Text}}
		}
	}
	out.CaseSensitive = wrapperspb.Bool(!in.IgnoreCase)
	out.Headers, out.DynamicMetadata = headerMatchers(in), claimMatchers(in)
	for _, q := range in.Query {
		out.QueryParameters = append(out.QueryParameters, queryMatcher(q))
	}
	return out
}

// headerMatchers returns the matchers of headers that must and that must not be there, by name, then those of method,
// authority and scheme.
func headerMatchers(in *value.HTTPMatch) []*routepb.HeaderMatcher {
	var out []*routepb.HeaderMatcher
	for _, h := range in.Headers {
		if value.RoutingClaim(h.Name) == nil {
			out = append(out, headerMatcher(h.Name, h.Match))
		}
	}
	for _, h := range in.WithoutHeaders {
		if value.RoutingClaim(h.Name) != nil {
			continue
		}
		m := headerMatcher(h.Name, h.Match)
		m.InvertMatch = true
		m.TreatMissingHeaderAsEmpty = h.Match.Kind != value.MatchPresent
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b *routepb.HeaderMatcher) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, pseudo := range []struct {
		name  string
		match *value.StringMatch
	}{{":method", in.Method}, {":authority", in.Authority}, {":scheme", in.Scheme}} {
		if pseudo.match != nil {
			out = append(out, headerMatcher(pseudo.name, *pseudo.match))
		}
	}
	return out
}

// claimMatchers returns the matchers of claims of a request's token, which stand among the headers by names of their
// own.
func claimMatchers(in *value.HTTPMatch) (out []*matcherpb.MetadataMatcher) {
	add := func(list []value.NamedMatch, without bool) {
		for _, h := range list {
			path := value.RoutingClaim(h.Name)
			if path == nil {
				continue
			}
			m := metadataMatch(claimMatcher(h.Match), tokenFilter, append([]string{tokenPayload}, path...)...)
			m.Invert = without
			out = append(out, m)
		}
	}
	add(in.Headers, false)
	add(in.WithoutHeaders, true)
	return out
}

// claimMatcher matches a claim that is as m says, or a list that has such a text.
func claimMatcher(m value.StringMatch) *matcherpb.ValueMatcher {
	if m.Kind == value.MatchPresent {
		return &matcherpb.ValueMatcher{MatchPattern: &matcherpb.ValueMatcher_PresentMatch{PresentMatch: true}}
	}
	return textOrList(stringValue(stringMatcher(m)))
}

func headerMatcher(name string, in value.StringMatch) *routepb.HeaderMatcher {
	if in.Kind == value.MatchPresent {
		return &routepb.HeaderMatcher{Name: name,
			HeaderMatchSpecifier: &routepb.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routepb.HeaderMatcher{Name: name,
		HeaderMatchSpecifier: &routepb.HeaderMatcher_StringMatch{StringMatch: stringMatcher(in)}}
}

func queryMatcher(in value.NamedMatch) *routepb.QueryParameterMatcher {
	if in.Match.Kind == value.MatchPresent {
		return &routepb.QueryParameterMatcher{Name: in.Name,
			QueryParameterMatchSpecifier: &routepb.QueryParameterMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routepb.QueryParameterMatcher{Name: in.Name,
		QueryParameterMatchSpecifier: &routepb.QueryParameterMatcher_StringMatch{StringMatch: stringMatcher(in.Match)}}
}

// stringMatcher returns a condition on a text as Envoy has it; nil for any text.
func stringMatcher(in value.StringMatch) *matcherpb.StringMatcher {
	switch in.Kind {
	case value.MatchExact:
		return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Exact{Exact: in.Text}}
	case value.MatchPrefix:
		return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Prefix{Prefix: in.Text}}
	case value.MatchRegex:
		return &matcherpb.StringMatcher{
			MatchPattern: &matcherpb.StringMatcher_SafeRegex{SafeRegex: &matcherpb.RegexMatcher{Regex: in.Text}}}
	}
	return nil
}
