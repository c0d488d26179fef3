package gen

import (
	"maps"
	"slices"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// headerOps are the changes of headers as Envoy has them. The Host header cannot be changed like others; authority is
// what it is set to.
type headerOps struct {
	requestAdd, responseAdd       []*corepb.HeaderValueOption
	requestRemove, responseRemove []string
	authority                     string
}

func headerOperations(in *networking.Headers) headerOps {
	req, resp := in.GetRequest(), in.GetResponse()
	out := headerOps{
		requestAdd:     append(headerOptions(req.GetSet(), setHeader), headerOptions(req.GetAdd(), addHeader)...),
		responseAdd:    append(headerOptions(resp.GetSet(), setHeader), headerOptions(resp.GetAdd(), addHeader)...),
		requestRemove:  removable(req.GetRemove()),
		responseRemove: removable(resp.GetRemove()),
	}
	if out.authority = authorityOf(req.GetSet()); out.authority == "" {
		out.authority = authorityOf(req.GetAdd())
	}
	return out
}

const (
	setHeader = corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	addHeader = corepb.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
)

func headerOptions(headers map[string]string,
	action corepb.HeaderValueOption_HeaderAppendAction) []*corepb.HeaderValueOption {
	var out []*corepb.HeaderValueOption
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		if !reserved(k) {
			out = append(out, &corepb.HeaderValueOption{Header: &corepb.HeaderValue{Key: k, Value: headers[k]},
				AppendAction: action})
		}
	}
	return out
}

func removable(names []string) []string {
	var out []string
	for _, n := range names {
		if !reserved(n) {
			out = append(out, n)
		}
	}
	return out
}

// reserved reports whether Envoy refuses to change a header.
func reserved(name string) bool {
	return strings.HasPrefix(name, ":") || strings.EqualFold(name, "host")
}

func authorityOf(headers map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(k, ":authority") || strings.EqualFold(k, "host") {
			return headers[k]
		}
	}
	return ""
}

// appendDestinationHeaders adds the changes of the only destination's headers to the route's. The route's own Host
// header wins.
func appendDestinationHeaders(r *routepb.Route, a *routepb.RouteAction, in *networking.Headers) {
	ops := headerOperations(in)
	r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, ops.requestAdd...)
	r.RequestHeadersToRemove = append(r.RequestHeadersToRemove, ops.requestRemove...)
	r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, ops.responseAdd...)
	r.ResponseHeadersToRemove = append(r.ResponseHeadersToRemove, ops.responseRemove...)
	if ops.authority != "" && a.HostRewriteSpecifier == nil {
		a.HostRewriteSpecifier = &routepb.RouteAction_HostRewriteLiteral{HostRewriteLiteral: ops.authority}
	}
}
