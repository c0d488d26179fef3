package ingest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
)

func checkVirtualService(o *clientnet.VirtualService) *problem {
	c, spec := &check{}, &o.Spec
	delegate := len(spec.Hosts) == 0 // What another VirtualService includes has neither hosts nor gateways.
	c.that(!delegate || len(spec.Gateways) == 0, "spec.hosts", "expected at least one host; only a delegate, which has no gateways, has none")
	c.gateways("spec.gateways", spec.Gateways)
	inMesh := !delegate && (len(spec.Gateways) == 0 || slices.Contains(spec.Gateways, meshGateway))
	for i, h := range spec.Hosts {
		at := item("spec.hosts", i)
		c.routedHost(at, h)
		c.that(!inMesh || h != "*", at, `expected a host in the mesh, "*" is for gateways only`)
		c.that(slices.Index(spec.Hosts, h) == i, at, "%q is listed twice", h)
	}
	c.that(len(spec.Http)+len(spec.Tcp)+len(spec.Tls) > 0, "spec", "expected http, tcp or tls")
	c.that(!delegate || len(spec.Tcp)+len(spec.Tls) == 0, "spec", "expected only http in a delegate")
	for i, r := range spec.Http {
		c.httpRoute(item("spec.http", i), r, delegate)
	}
	for i, r := range spec.Tls {
		c.tlsRoute(item("spec.tls", i), r, o)
	}
	for i, r := range spec.Tcp {
		at := item("spec.tcp", i)
		for j, m := range r.GetMatch() {
			c.streamMatch(item(at+".match", j), m)
		}
		c.streamDestinations(at, r.GetRoute())
	}
	c.exportTo(spec.ExportTo)
	return c.first
}

// routedHost takes what can be asked for: a name, a wildcard, an address.
func (c *check) routedHost(at, h string) {
	if strings.Contains(h, ":") || strings.Trim(h, "0123456789.") == "" {
		c.address(at, h)
		return
	}
	c.host(at, h, true)
}

func (c *check) gateways(at string, names []string) {
	for i, g := range names {
		ns, name, ok := strings.Cut(g, "/")
		if !ok {
			ns, name = ".", g
		}
		c.that((ns == "." || isLabel(ns)) && isDomain(name), item(at, i), `expected "mesh", a name, or namespace/name, got %q`, g)
	}
}

func (c *check) httpRoute(at string, r *networking.HTTPRoute, delegate bool) {
	c.that(r != nil, at, "expected a route")
	if r == nil {
		return
	}
	c.httpAction(at, r, delegate)
	for i, m := range r.Match {
		c.httpMatch(item(at+".match", i), m)
	}
	c.headers(at+".headers", r.Headers)
	c.cors(at+".corsPolicy", r.CorsPolicy)
	c.fault(at+".fault", r.Fault)
	c.mirrors(at, r)
	c.redirect(at+".redirect", r.Redirect)
	c.retries(at+".retries", r.Retries)
	c.rewrite(at+".rewrite", r.Rewrite)
	c.duration(at+".timeout", r.Timeout, true)
	total := int32(0)
	for i, d := range r.Route {
		to := item(at+".route", i)
		c.destination(to+".destination", d.GetDestination(), true)
		c.headers(to+".headers", d.GetHeaders())
		c.that(d.GetWeight() >= 0, to+".weight", "expected a weight of at least 0, got %d", d.GetWeight())
		total += d.GetWeight()
	}
	c.that(len(r.Route) < 2 || total > 0, at+".route", "expected weights that add up to more than 0")
}

// httpAction checks that a route does one thing.
func (c *check) httpAction(at string, r *networking.HTTPRoute, delegate bool) {
	if r.Delegate != nil {
		c.that(!delegate, at+".delegate", "expected no delegate in a delegate")
		c.that(r.Redirect == nil && len(r.Route) == 0 && r.DirectResponse == nil, at, "expected delegate alone, without route, redirect or directResponse")
		c.that(r.Delegate.GetName() != "", at+".delegate.name", "expected the name of a VirtualService")
		return
	}
	c.that(len(r.Route) > 0 || r.Redirect != nil || r.DirectResponse != nil, at+".route", "expected route, redirect or directResponse")
	c.that(r.Redirect == nil || r.DirectResponse == nil, at, "expected only one of redirect and directResponse")
	c.that(len(r.Route) == 0 || r.Redirect == nil && r.DirectResponse == nil, at, "expected only one of route, redirect and directResponse")
	c.that(r.Redirect == nil || r.Fault == nil, at+".fault", "expected no fault beside redirect")
	c.that(len(r.Route) > 0 || r.Rewrite == nil, at+".rewrite", "expected rewrite only beside route")
	if d := r.DirectResponse; d != nil {
		c.within(at+".directResponse.status", int64(d.GetStatus()), 200, 599)
		c.that(len(d.GetBody().GetString_())+len(d.GetBody().GetBytes()) <= 1<<20, at+".directResponse.body", "expected at most 1 MiB")
	}
}

func (c *check) httpMatch(at string, m *networking.HTTPMatchRequest) {
	for _, s := range []struct {
		field string
		match *networking.StringMatch
	}{{".scheme", m.GetScheme()}, {".method", m.GetMethod()}, {".authority", m.GetAuthority()}} {
		c.match(at+s.field, s.match)
	}
	if expression, ok := m.GetUri().GetMatchType().(*networking.StringMatch_Regex); ok {
		c.regex(at+".uri.regex", expression.Regex)
	}
	c.headerMatches(at+".headers", m.GetHeaders())
	c.headerMatches(at+".withoutHeaders", m.GetWithoutHeaders())
	for _, name := range slices.Sorted(maps.Keys(m.GetQueryParams())) {
		c.match(at+".queryParams."+name, m.GetQueryParams()[name])
	}
	c.optionalPort(at+".port", m.GetPort())
	c.labels(at+".sourceLabels", m.GetSourceLabels())
	c.gateways(at+".gateways", m.GetGateways())
	c.that(m.GetSourceNamespace() == "" || isLabel(m.GetSourceNamespace()), at+".sourceNamespace", "expected a namespace, got %q", m.GetSourceNamespace())
}

func (c *check) headerMatches(at string, matches map[string]*networking.StringMatch) {
	for _, name := range slices.Sorted(maps.Keys(matches)) {
		if !strings.HasPrefix(name, "@request.auth.claims") {
			c.header(at, name)
		}
		c.match(at+"."+name, matches[name])
	}
}

// headers checks operations. Of the pseudo headers only the authority of a request can be set.
func (c *check) headers(at string, h *networking.Headers) {
	c.operations(at+".request", h.GetRequest(), true)
	c.operations(at+".response", h.GetResponse(), false)
}

func (c *check) operations(at string, o *networking.Headers_HeaderOperations, request bool) {
	c.changes(at+".set", o.GetSet(), request)
	c.changes(at+".add", o.GetAdd(), request)
	for i, name := range o.GetRemove() {
		c.operation(item(at+".remove", i), name, false)
	}
}

func (c *check) changes(at string, values map[string]string, request bool) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		c.operation(at, name, request)
		c.that(!strings.ContainsFunc(values[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }), at+"."+name,
			"expected a header's value without control characters")
	}
}

func (c *check) operation(at, name string, authority bool) {
	c.that(name != "", at, "expected a header's name, got an empty one")
	isAuthority := strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
	c.that(authority && isAuthority || !isAuthority && !strings.HasPrefix(name, ":"), at, "header %q cannot be changed here", name)
}

func (c *check) cors(at string, p *networking.CorsPolicy) {
	for i, o := range p.GetAllowOrigins() {
		c.match(item(at+".allowOrigins", i), o)
	}
	for i, h := range p.GetAllowHeaders() {
		if h != "*" {
			c.header(item(at+".allowHeaders", i), h)
		}
	}
	for i, h := range p.GetExposeHeaders() {
		if h != "*" {
			c.header(item(at+".exposeHeaders", i), h)
		}
	}
	c.duration(at+".maxAge", p.GetMaxAge(), true)
}

func (c *check) fault(at string, f *networking.HTTPFaultInjection) {
	if d := f.GetDelay(); d != nil {
		c.percent(at+".delay.percentage", d.GetPercentage())
		c.that(d.GetFixedDelay() != nil, at+".delay.fixedDelay", "expected a duration")
		c.positive(at+".delay.fixedDelay", d.GetFixedDelay())
	}
	if a := f.GetAbort(); a != nil {
		c.percent(at+".abort.percentage", a.GetPercentage())
		switch t := a.GetErrorType().(type) {
		case *networking.HTTPFaultInjection_Abort_HttpStatus:
			c.within(at+".abort.httpStatus", int64(t.HttpStatus), 200, 599)
		case *networking.HTTPFaultInjection_Abort_GrpcStatus:
			c.that(t.GrpcStatus != "", at+".abort.grpcStatus", "expected the name of a gRPC status")
		default:
			c.that(false, at+".abort", "expected httpStatus or grpcStatus")
		}
	}
}

func (c *check) mirrors(at string, r *networking.HTTPRoute) {
	c.that(r.Mirror == nil || len(r.Mirrors) == 0, at+".mirrors", "expected only one of mirror and mirrors")
	c.destination(at+".mirror", r.Mirror, false)
	c.percent(at+".mirrorPercentage", r.MirrorPercentage)
	//lint:ignore SA1019 objects of old still have it
	c.within(at+".mirrorPercent", int64(r.MirrorPercent.GetValue()), 0, 100)
	for i, m := range r.Mirrors {
		c.destination(item(at+".mirrors", i)+".destination", m.GetDestination(), true)
		c.percent(item(at+".mirrors", i)+".percentage", m.GetPercentage())
	}
}

func (c *check) redirect(at string, r *networking.HTTPRedirect) {
	if r == nil {
		return
	}
	c.that(r.GetUri() != "" || r.GetAuthority() != "" || r.GetScheme() != "" || r.GetRedirectCode() != 0 || r.GetRedirectPort() != nil || r.GetPrefixRewrite() != "",
		at, "expected at least one of uri, authority, scheme, port and redirectCode")
	c.that(r.GetRedirectCode() == 0 || slices.Contains([]uint32{301, 302, 303, 307, 308}, r.GetRedirectCode()), at+".redirectCode",
		"expected 301, 302, 303, 307 or 308, got %d", r.GetRedirectCode())
	c.that(slices.Contains([]string{"", "http", "https"}, r.GetScheme()), at+".scheme", "expected http or https, got %q", r.GetScheme())
	c.optionalPort(at+".port", r.GetPort())
}

func (c *check) retries(at string, r *networking.HTTPRetry) {
	c.that(r.GetAttempts() >= 0, at+".attempts", "expected a number of at least 0, got %d", r.GetAttempts())
	c.that(r == nil || r.Attempts > 0 || r.PerTryTimeout == nil && r.RetryOn == "", at+".attempts", "expected at least 1 beside perTryTimeout and retryOn")
	c.duration(at+".perTryTimeout", r.GetPerTryTimeout(), true)
	c.duration(at+".backoff", r.GetBackoff(), true)
	for _, on := range strings.Split(r.GetRetryOn(), ",") {
		on = strings.TrimSpace(on)
		if n, err := strconv.Atoi(on); err == nil {
			c.within(at+".retryOn", int64(n), 100, 599)
			continue
		}
		c.that(on == "" || slices.Contains(retryConditions(), on), at+".retryOn", "expected conditions and status codes, %q is neither", on)
	}
}

// retryConditions are those that Envoy knows.
func retryConditions() []string {
	return []string{
		"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "retriable-4xx", "refused-stream", "retriable-status-codes",
		"retriable-headers", "envoy-ratelimited", "http3-post-connect-failure", "cancelled", "deadline-exceeded", "internal", "resource-exhausted",
		"unavailable",
	}
}

func (c *check) rewrite(at string, r *networking.HTTPRewrite) {
	if r == nil {
		return
	}
	x := r.GetUriRegexRewrite()
	c.that(r.GetUri() != "" || r.GetAuthority() != "" || x != nil, at, "expected uri, uriRegexRewrite or authority")
	c.that(r.GetUri() == "" || x == nil, at, "expected only one of uri and uriRegexRewrite")
	if x != nil {
		c.that(x.GetMatch() != "" && x.GetRewrite() != "", at+".uriRegexRewrite", "expected match and rewrite")
		c.regex(at+".uriRegexRewrite.match", x.GetMatch())
	}
}

func (c *check) destination(at string, d *networking.Destination, required bool) {
	c.that(d != nil || !required, at, "expected a destination")
	if d == nil {
		return
	}
	c.that(d.GetHost() != "*", at+".host", `expected a host, "*" cannot be routed to`)
	c.routedHost(at+".host", d.GetHost())
	if d.GetPort() != nil {
		c.port(at+".port.number", d.GetPort().GetNumber())
	}
}
