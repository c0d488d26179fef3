package gen

import (
	"cmp"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// forward returns the action of a route that leads to clusters; nil if it leads to none. authority replaces the Host
// header, unless the rewrite does.
func forward(k RoutesKey, mesh *value.RouteSettings, h *value.HTTPRoute, authority string) *routepb.RouteAction {
	out := &routepb.RouteAction{RequestMirrorPolicies: mirrors(k, h)}
	setTimeout(out, h.Timeout, k.Proxyless)
	if r := h.Rewrite; r != nil {
		rewrite(out, r)
		authority = cmp.Or(r.Authority, authority)
	}
	if authority != "" {
		out.HostRewriteSpecifier = &routepb.RouteAction_HostRewriteLiteral{HostRewriteLiteral: authority}
	}
	hashed := false
	if len(h.Destinations) == 1 {
		d := h.Destinations[0].Destination
		out.ClusterSpecifier = &routepb.RouteAction_Cluster{Cluster: k.cluster(d)}
		hashed = k.addHash(out, d)
	} else if clusters := weighted(k, out, h.Destinations); len(clusters) > 0 {
		out.ClusterSpecifier = &routepb.RouteAction_WeightedClusters{
			WeightedClusters: &routepb.WeightedCluster{Clusters: clusters}}
	} else {
		return nil
	}
	policy := h.Retries
	if policy == nil {
		policy = mesh.Retries
	}
	out.RetryPolicy = retryPolicy(policy, hashed)
	return out
}

// setTimeout sets the timeout of requests, and the same as the longest that a gRPC request may ask for. None is none.
func setTimeout(a *routepb.RouteAction, d value.Duration, proxyless bool) {
	timeout := &durationpb.Duration{Seconds: d.Seconds, Nanos: d.Nanos}
	a.Timeout = timeout
	if proxyless { // gRPC reads only this
		a.MaxStreamDuration = &routepb.RouteAction_MaxStreamDuration{MaxStreamDuration: timeout}
		return
	}
	//lint:ignore SA1019 what replaces it lets a client's own timeout count as the longest
	a.MaxGrpcTimeout = timeout
}

// cluster returns the name of the cluster of a destination. Whether there is such a cluster is not asked: requests to
// one that is missing fail.
func (k RoutesKey) cluster(d value.Destination) string {
	known := k.Destinations.find(d.Host)
	return ClusterName(cmp.Or(d.Port, known.Port, k.Port), d.Subset, cmp.Or(known.Target, d.Host))
}

// parseCluster returns the host and port of the name of an outbound cluster.
func parseCluster(name string) (host, port string, ok bool) {
	parts := strings.SplitN(name, "|", 4)
	if len(parts) != 4 {
		return "", "", false
	}
	return parts[3], parts[1], true
}

// weighted returns the clusters of several destinations; those without weight are left out.
func weighted(k RoutesKey, a *routepb.RouteAction,
	routes []value.WeightedDestination) []*routepb.WeightedCluster_ClusterWeight {
	var out []*routepb.WeightedCluster_ClusterWeight
	for _, r := range routes {
		if r.Weight == 0 {
			continue
		}
		ops := headerOperations(r.Headers)
		c := &routepb.WeightedCluster_ClusterWeight{
			Name: k.cluster(r.Destination), Weight: wrapperspb.UInt32(r.Weight),
			RequestHeadersToAdd: ops.requestAdd, RequestHeadersToRemove: ops.requestRemove,
			ResponseHeadersToAdd: ops.responseAdd, ResponseHeadersToRemove: ops.responseRemove,
		}
		if ops.authority != "" {
			c.HostRewriteSpecifier = &routepb.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: ops.authority}
		}
		out = append(out, c)
		k.addHash(a, r.Destination)
	}
	return out
}

func rewrite(a *routepb.RouteAction, in *value.Rewrite) {
	if re := in.Regex; re != nil {
		a.RegexRewrite = &matcherpb.RegexMatchAndSubstitute{Pattern: &matcherpb.RegexMatcher{Regex: re.Match},
			Substitution: re.Substitution}
	} else {
		a.PrefixRewrite = in.Path
	}
}

// mirrors returns the clusters that get copies of the requests.
func mirrors(k RoutesKey, h *value.HTTPRoute) []*routepb.RouteAction_RequestMirrorPolicy {
	var out []*routepb.RouteAction_RequestMirrorPolicy
	for _, m := range h.Mirrors {
		if m.Share.Parts == 0 {
			continue
		}
		out = append(out, &routepb.RouteAction_RequestMirrorPolicy{
			Cluster:         k.cluster(m.Destination),
			RuntimeFraction: &corepb.RuntimeFractionalPercent{DefaultValue: fraction(m.Share)},
			TraceSampled:    wrapperspb.Bool(false), DisableShadowHostSuffixAppend: true,
		})
	}
	return out
}

// fraction returns f as Envoy has it; nil where it is unset.
func fraction(f value.Fraction) *typepb.FractionalPercent {
	switch f.Of {
	case 0:
		return nil
	case 100:
		return &typepb.FractionalPercent{Numerator: f.Parts, Denominator: typepb.FractionalPercent_HUNDRED}
	}
	return &typepb.FractionalPercent{Numerator: f.Parts, Denominator: typepb.FractionalPercent_MILLION}
}

// duration returns d as messages have it; nil where it is unset.
func duration(d value.Duration) *durationpb.Duration {
	if !d.Set {
		return nil
	}
	return &durationpb.Duration{Seconds: d.Seconds, Nanos: d.Nanos}
}

// redirect returns the answer that sends the client elsewhere. port is the one that it called.
func redirect(in *value.HTTPRedirect, port int, tls bool) *routepb.RedirectAction {
	out := &routepb.RedirectAction{
		HostRedirect:         in.Authority,
		PathRewriteSpecifier: &routepb.RedirectAction_PathRedirect{PathRedirect: in.Path},
		ResponseCode:         redirectCode(in.Code),
		PortRedirect:         in.Port,
	}
	scheme := "http"
	if tls {
		scheme = "https"
	}
	if in.Scheme != "" {
		scheme = in.Scheme
		out.SchemeRewriteSpecifier = &routepb.RedirectAction_SchemeRedirect{SchemeRedirect: in.Scheme}
	}
	if in.SamePort {
		out.PortRedirect = uint32(port)
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

func directResponse(in *value.DirectResponse) *routepb.DirectResponseAction {
	out := &routepb.DirectResponseAction{Status: in.Status}
	switch in.Form {
	case value.TextBody:
		out.Body = &corepb.DataSource{Specifier: &corepb.DataSource_InlineString{InlineString: in.Body}}
	case value.BytesBody:
		out.Body = &corepb.DataSource{Specifier: &corepb.DataSource_InlineBytes{InlineBytes: []byte(in.Body)}}
	}
	return out
}
