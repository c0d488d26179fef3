package istio

import (
	"cmp"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Routing converts a VirtualService. Routes that name a delegate must already be replaced by the delegate's.
func Routing(in *networking.VirtualService) (out value.Routing) {
	out.Hosts, out.Gateways = list(in.GetHosts()), list(in.GetGateways())
	for _, r := range in.GetHttp() {
		out.HTTP = append(out.HTTP, httpRoute(r))
	}
	for _, r := range in.GetTls() {
		out.TLS = append(out.TLS, tlsRoute(r))
	}
	for _, r := range in.GetTcp() {
		out.TCP = append(out.TCP, tcpRoute(r))
	}
	return out
}

func tlsRoute(in *networking.TLSRoute) *value.StreamRoute {
	out := &value.StreamRoute{Destinations: streamDestinations(in.GetRoute())}
	for _, m := range in.GetMatch() {
		out.Matches = append(out.Matches, &value.StreamMatch{
			Client:      client(m.GetGateways(), m.GetSourceLabels(), m.GetSourceNamespace()),
			ServerNames: list(m.GetSniHosts()), Subnets: list(m.GetDestinationSubnets()), Port: int(m.GetPort()),
		})
	}
	return out
}

func tcpRoute(in *networking.TCPRoute) *value.StreamRoute {
	out := &value.StreamRoute{Destinations: streamDestinations(in.GetRoute())}
	for _, m := range in.GetMatch() {
		out.Matches = append(out.Matches, &value.StreamMatch{
			Client:  client(m.GetGateways(), m.GetSourceLabels(), m.GetSourceNamespace()),
			Subnets: list(m.GetDestinationSubnets()), Port: int(m.GetPort()),
		})
	}
	return out
}

func client(gateways []string, labels map[string]string, namespace string) value.Client {
	out := value.Client{Gateways: list(gateways), Namespace: namespace}
	if len(labels) > 0 {
		out.Labels = labels
	}
	return out
}

func streamDestinations(in []*networking.RouteDestination) []value.WeightedDestination {
	return each(in, func(d *networking.RouteDestination) value.WeightedDestination {
		return value.WeightedDestination{Destination: destination(d.GetDestination()), Weight: uint32(d.GetWeight())}
	})
}

func destination(in *networking.Destination) value.Destination {
	return value.Destination{Host: in.GetHost(), Subset: in.GetSubset(), Port: int(in.GetPort().GetNumber())}
}

func httpRoute(in *networking.HTTPRoute) *value.HTTPRoute {
	return &value.HTTPRoute{
		Name:     in.GetName(),
		Matches:  each(in.GetMatch(), httpMatch),
		Redirect: optional(in.GetRedirect(), redirect),
		Response: optional(in.GetDirectResponse(), response),
		Destinations: each(in.GetRoute(), func(d *networking.HTTPRouteDestination) value.WeightedDestination {
			return value.WeightedDestination{Destination: destination(d.GetDestination()),
				Weight: uint32(d.GetWeight()), Headers: optional(d.GetHeaders(), headerChanges)}
		}),
		Mirrors: mirrors(in),
		Rewrite: optional(in.GetRewrite(), rewrite),
		Timeout: duration(in.GetTimeout()),
		Retries: optional(in.GetRetries(), Retries),
		Fault:   fault(in.GetFault()),
		CORS:    optional(in.GetCorsPolicy(), cors),
		Headers: optional(in.GetHeaders(), headerChanges),
	}
}

func httpMatch(in *networking.HTTPMatchRequest) *value.HTTPMatch {
	return &value.HTTPMatch{
		Client: client(in.GetGateways(), in.GetSourceLabels(), in.GetSourceNamespace()),
		Name:   in.GetName(), StatPrefix: in.GetStatPrefix(), Port: int(in.GetPort()),
		Path: pathMatch(in.GetUri()), IgnoreCase: in.GetIgnoreUriCase(),
		Scheme: optional(in.GetScheme(), stringMatch), Method: optional(in.GetMethod(), stringMatch),
		Authority: optional(in.GetAuthority(), stringMatch),
		Headers:   namedMatches(in.GetHeaders()), WithoutHeaders: namedMatches(in.GetWithoutHeaders()),
		Query: namedMatches(in.GetQueryParams()),
	}
}

// pathMatch converts a match on the path, where "*" is an ordinary expression; nil matches every path.
func pathMatch(in *networking.StringMatch) *value.StringMatch {
	if in.GetMatchType() == nil {
		return nil
	}
	return &value.StringMatch{Kind: matchKind(in), Text: matchText(in)}
}

// stringMatch converts a match on a string that must be present. The expression "*", though invalid, adds no other
// condition.
func stringMatch(in *networking.StringMatch) value.StringMatch {
	if matchKind(in) == value.MatchRegex && matchText(in) == "*" {
		return value.StringMatch{}
	}
	return value.StringMatch{Kind: matchKind(in), Text: matchText(in)}
}

func matchKind(in *networking.StringMatch) value.MatchKind {
	switch in.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return value.MatchExact
	case *networking.StringMatch_Prefix:
		return value.MatchPrefix
	case *networking.StringMatch_Regex:
		return value.MatchRegex
	}
	return value.MatchPresent
}

func matchText(in *networking.StringMatch) string {
	return cmp.Or(in.GetExact(), in.GetPrefix(), in.GetRegex())
}

func namedMatches(in map[string]*networking.StringMatch) []value.NamedMatch {
	return each(slices.Sorted(maps.Keys(in)), func(name string) value.NamedMatch {
		return value.NamedMatch{Name: name, Match: stringMatch(in[name])}
	})
}

func redirect(in *networking.HTTPRedirect) value.HTTPRedirect {
	out := value.HTTPRedirect{Scheme: in.GetScheme(), Authority: in.GetAuthority(), Path: in.GetUri(),
		Code: in.GetRedirectCode()}
	switch p := in.GetRedirectPort().(type) {
	case *networking.HTTPRedirect_Port:
		out.Port = p.Port
	case *networking.HTTPRedirect_DerivePort:
		out.SamePort = p.DerivePort == networking.HTTPRedirect_FROM_REQUEST_PORT
	}
	return out
}

func response(in *networking.HTTPDirectResponse) value.DirectResponse {
	out := value.DirectResponse{Status: in.GetStatus()}
	switch b := in.GetBody().GetSpecifier().(type) {
	case *networking.HTTPBody_String_:
		out.Form, out.Body = value.TextBody, b.String_
	case *networking.HTTPBody_Bytes:
		out.Form, out.Body = value.BytesBody, string(b.Bytes)
	}
	return out
}

// mirrors returns the single mirror of the old field, with its percentage, and those of the list.
func mirrors(in *networking.HTTPRoute) (out []value.Mirror) {
	if in.GetMirror() != nil {
		share := hundredths(100)
		switch {
		case in.GetMirrorPercentage() != nil:
			share = millionths(in.GetMirrorPercentage())
		//lint:ignore SA1019 older objects still use it
		case in.GetMirrorPercent() != nil:
			//lint:ignore SA1019 as above
			share = hundredths(in.GetMirrorPercent().GetValue())
		}
		out = append(out, value.Mirror{Destination: destination(in.GetMirror()), Share: share})
	}
	for _, m := range in.GetMirrors() {
		share := hundredths(100)
		if m.GetPercentage() != nil {
			share = millionths(m.GetPercentage())
		}
		out = append(out, value.Mirror{Destination: destination(m.GetDestination()), Share: share})
	}
	return out
}

func rewrite(in *networking.HTTPRewrite) value.Rewrite {
	return value.Rewrite{Path: in.GetUri(), Authority: in.GetAuthority(),
		Regex: optional(in.GetUriRegexRewrite(), func(r *networking.RegexRewrite) value.RegexRewrite {
			return value.RegexRewrite{Match: r.GetMatch(), Substitution: r.GetRewrite()}
		})}
}

// Retries converts the retry policy of a route or of the mesh.
func Retries(in *networking.HTTPRetry) value.Retries {
	return value.Retries{
		Attempts: uint32(max(0, in.GetAttempts())), On: in.GetRetryOn(),
		PerTryTimeout: duration(in.GetPerTryTimeout()), Backoff: duration(in.GetBackoff()),
		AvoidHosts:       boolean(in.GetRetryIgnorePreviousHosts()),
		RemoteLocalities: in.GetRetryRemoteLocalities().GetValue(),
	}
}

func headerChanges(in *networking.Headers) value.HeaderChanges {
	return value.HeaderChanges{Request: headerEdits(in.GetRequest()), Response: headerEdits(in.GetResponse())}
}

func headerEdits(in *networking.Headers_HeaderOperations) value.HeaderEdits {
	return value.HeaderEdits{Set: headers(in.GetSet()), Add: headers(in.GetAdd()), Remove: list(in.GetRemove())}
}

func headers(in map[string]string) []value.Header {
	return each(slices.Sorted(maps.Keys(in)), func(name string) value.Header {
		return value.Header{Name: name, Value: in[name]}
	})
}
