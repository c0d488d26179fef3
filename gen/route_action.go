package gen

import (
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// forward is the action of a route that leads to clusters; nil if it leads to none. authority replaces the Host header,
// unless the rewrite does.
func forward(k RoutesKey, mesh *value.Mesh, h *networking.HTTPRoute, authority string) *routepb.RouteAction {
	out := &routepb.RouteAction{RequestMirrorPolicies: mirrors(k, h)}
	setTimeout(out, h.GetTimeout(), k.Proxyless)
	rewrite(out, h.GetRewrite())
	if a := h.GetRewrite().GetAuthority(); a != "" {
		authority = a
	}
	if authority != "" {
		out.HostRewriteSpecifier = &routepb.RouteAction_HostRewriteLiteral{HostRewriteLiteral: authority}
	}
	hashed := false
	if len(h.GetRoute()) == 1 {
		d := h.GetRoute()[0].GetDestination()
		out.ClusterSpecifier = &routepb.RouteAction_Cluster{Cluster: k.cluster(d)}
		hashed = k.addHash(out, d)
	} else if clusters := weighted(k, out, h.GetRoute()); len(clusters) > 0 {
		out.ClusterSpecifier = &routepb.RouteAction_WeightedClusters{WeightedClusters: &routepb.WeightedCluster{Clusters: clusters}}
	} else {
		return nil
	}
	policy := h.GetRetries()
	if policy == nil {
		policy = mesh.Config.GetDefaultHttpRetryPolicy()
	}
	out.RetryPolicy = retryPolicy(policy, hashed)
	return out
}

// setTimeout sets the timeout of requests, and the same as the longest that a gRPC request may ask for. None is none.
func setTimeout(a *routepb.RouteAction, timeout *durationpb.Duration, proxyless bool) {
	if timeout == nil {
		timeout = &durationpb.Duration{}
	}
	a.Timeout = timeout
	if proxyless { // gRPC reads only this
		a.MaxStreamDuration = &routepb.RouteAction_MaxStreamDuration{MaxStreamDuration: timeout}
		return
	}
	//lint:ignore SA1019 what replaces it lets a client's own timeout count as the longest
	a.MaxGrpcTimeout = timeout
}

// cluster is the name of the cluster of a destination. Whether there is such a cluster is not asked: requests to one
// that is missing fail.
func (k RoutesKey) cluster(d *networking.Destination) string {
	known := k.Destinations.find(d.GetHost())
	host, port := d.GetHost(), k.Port
	if known.Target != "" {
		host = known.Target
	}
	if d.GetPort() != nil {
		port = int(d.GetPort().GetNumber())
	} else if known.Port != 0 {
		port = known.Port
	}
	return ClusterName(port, d.GetSubset(), host)
}

// parseCluster is the host and port of the name of an outbound cluster.
func parseCluster(name string) (host, port string, ok bool) {
	parts := strings.SplitN(name, "|", 4)
	if len(parts) != 4 {
		return "", "", false
	}
	return parts[3], parts[1], true
}

// weighted are the clusters of several destinations; those without weight are left out.
func weighted(k RoutesKey, a *routepb.RouteAction,
	routes []*networking.HTTPRouteDestination) []*routepb.WeightedCluster_ClusterWeight {
	var out []*routepb.WeightedCluster_ClusterWeight
	for _, r := range routes {
		if r.GetWeight() == 0 {
			continue
		}
		ops := headerOperations(r.GetHeaders())
		c := &routepb.WeightedCluster_ClusterWeight{
			Name: k.cluster(r.GetDestination()), Weight: wrapperspb.UInt32(uint32(r.GetWeight())),
			RequestHeadersToAdd: ops.requestAdd, RequestHeadersToRemove: ops.requestRemove,
			ResponseHeadersToAdd: ops.responseAdd, ResponseHeadersToRemove: ops.responseRemove,
		}
		if ops.authority != "" {
			c.HostRewriteSpecifier = &routepb.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: ops.authority}
		}
		out = append(out, c)
		k.addHash(a, r.GetDestination())
	}
	return out
}

func rewrite(a *routepb.RouteAction, in *networking.HTTPRewrite) {
	if re := in.GetUriRegexRewrite(); re != nil {
		a.RegexRewrite = &matcherpb.RegexMatchAndSubstitute{Pattern: &matcherpb.RegexMatcher{Regex: re.GetMatch()},
			Substitution: re.GetRewrite()}
	} else {
		a.PrefixRewrite = in.GetUri()
	}
}

// mirrors are the clusters that get copies of the requests.
func mirrors(k RoutesKey, h *networking.HTTPRoute) []*routepb.RouteAction_RequestMirrorPolicy {
	var out []*routepb.RouteAction_RequestMirrorPolicy
	add := func(d *networking.Destination, p *typepb.FractionalPercent) {
		if d == nil || p.GetNumerator() == 0 {
			return
		}
		out = append(out, &routepb.RouteAction_RequestMirrorPolicy{
			Cluster: k.cluster(d), RuntimeFraction: &corepb.RuntimeFractionalPercent{DefaultValue: p},
			TraceSampled: wrapperspb.Bool(false), DisableShadowHostSuffixAppend: true,
		})
	}
	switch {
	case h.GetMirrorPercentage() != nil:
		add(h.GetMirror(), percent(h.GetMirrorPercentage()))
	//lint:ignore SA1019 old objects still have it
	case h.GetMirrorPercent() != nil:
		//lint:ignore SA1019 as above
		add(h.GetMirror(), hundredths(h.GetMirrorPercent().GetValue()))
	default:
		add(h.GetMirror(), hundredths(100))
	}
	for _, m := range h.GetMirrors() {
		p := hundredths(100)
		if m.GetPercentage() != nil {
			p = percent(m.GetPercentage())
		}
		add(m.GetDestination(), p)
	}
	return out
}

func percent(p *networking.Percent) *typepb.FractionalPercent {
	return &typepb.FractionalPercent{Numerator: uint32(p.GetValue() * 10000),
		Denominator: typepb.FractionalPercent_MILLION}
}

func hundredths(n uint32) *typepb.FractionalPercent {
	return &typepb.FractionalPercent{Numerator: n, Denominator: typepb.FractionalPercent_HUNDRED}
}

// redirect is the answer that sends the client elsewhere. port is the one that it called.
func redirect(in *networking.HTTPRedirect, port int, tls bool) *routepb.RedirectAction {
	out := &routepb.RedirectAction{
		HostRedirect:         in.GetAuthority(),
		PathRewriteSpecifier: &routepb.RedirectAction_PathRedirect{PathRedirect: in.GetUri()},
		ResponseCode:         redirectCode(in.GetRedirectCode()),
	}
	scheme := "http"
	if tls {
		scheme = "https"
	}
	if s := in.GetScheme(); s != "" {
		scheme = s
		out.SchemeRewriteSpecifier = &routepb.RedirectAction_SchemeRedirect{SchemeRedirect: s}
	}
	switch p := in.GetRedirectPort().(type) {
	case *networking.HTTPRedirect_Port:
		out.PortRedirect = p.Port
	case *networking.HTTPRedirect_DerivePort:
		if p.DerivePort == networking.HTTPRedirect_FROM_REQUEST_PORT {
			out.PortRedirect = uint32(port)
		}
	}
	if out.PortRedirect == 80 && scheme == "http" || out.PortRedirect == 443 && scheme == "https" {
		out.PortRedirect = 0
	}
	return out
}

func redirectCode(code uint32) routepb.RedirectAction_RedirectResponseCode {
	switch code {
	case 302:
		return routepb.RedirectAction_FOUND
	case 303:
		return routepb.RedirectAction_SEE_OTHER
	case 307:
		return routepb.RedirectAction_TEMPORARY_REDIRECT
	case 308:
		return routepb.RedirectAction_PERMANENT_REDIRECT
	}
	return routepb.RedirectAction_MOVED_PERMANENTLY
}

func directResponse(in *networking.HTTPDirectResponse) *routepb.DirectResponseAction {
	out := &routepb.DirectResponseAction{Status: in.GetStatus()}
	switch b := in.GetBody().GetSpecifier().(type) {
	case *networking.HTTPBody_String_:
		out.Body = &corepb.DataSource{Specifier: &corepb.DataSource_InlineString{InlineString: b.String_}}
	case *networking.HTTPBody_Bytes:
		out.Body = &corepb.DataSource{Specifier: &corepb.DataSource_InlineBytes{InlineBytes: b.Bytes}}
	}
	return out
}
