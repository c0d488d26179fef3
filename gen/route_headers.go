package gen

import (
	"cmp"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// headerOps are the changes of headers as Envoy has them. The Host header cannot be changed like others; authority is
// what it is set to.
type headerOps struct {
	requestAdd, responseAdd       []*corepb.HeaderValueOption
	requestRemove, responseRemove []string
	authority                     string
}

func headerOperations(in *value.HeaderChanges) headerOps {
	if in == nil {
		return headerOps{}
	}
	req, resp := in.Request, in.Response
	return headerOps{
		requestAdd:     append(headerOptions(req.Set, setHeader), headerOptions(req.Add, addHeader)...),
		responseAdd:    append(headerOptions(resp.Set, setHeader), headerOptions(resp.Add, addHeader)...),
		requestRemove:  removable(req.Remove),
		responseRemove: removable(resp.Remove),
		authority:      cmp.Or(authorityOf(req.Set), authorityOf(req.Add)),
	}
}

const (
	setHeader = corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	addHeader = corepb.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
)

func headerOptions(headers []value.Header,
	action corepb.HeaderValueOption_HeaderAppendAction) []*corepb.HeaderValueOption {
	var out []*corepb.HeaderValueOption
	for _, h := range headers {
		if !reserved(h.Name) {
			out = append(out, &corepb.HeaderValueOption{Header: &corepb.HeaderValue{Key: h.Name, Value: h.Value},
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

func authorityOf(headers []value.Header) string {
	for _, h := range headers {
		if strings.EqualFold(h.Name, ":authority") || strings.EqualFold(h.Name, "host") {
			return h.Value
		}
	}
	return ""
}

// appendDestinationHeaders adds the changes of the only destination's headers to the route's. The route's own Host
// header wins.
func appendDestinationHeaders(r *routepb.Route, a *routepb.RouteAction, in *value.HeaderChanges) {
	ops := headerOperations(in)
	r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, ops.requestAdd...)
	r.RequestHeadersToRemove = append(r.RequestHeadersToRemove, ops.requestRemove...)
	r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, ops.responseAdd...)
	r.ResponseHeadersToRemove = append(r.ResponseHeadersToRemove, ops.responseRemove...)
	if ops.authority != "" && a.HostRewriteSpecifier == nil {
		a.HostRewriteSpecifier = &routepb.RouteAction_HostRewriteLiteral{HostRewriteLiteral: ops.authority}
	}
}
