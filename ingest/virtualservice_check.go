package ingest

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/snapshot/value"
)

// checkVirtualService checks a VirtualService. Regular expressions may have programs up to regexSize.
func checkVirtualService(o *clientnet.VirtualService, regexSize int) *problem {
	c, spec := &check{regexSize: regexSize}, &o.Spec
	// A VirtualService without hosts is a delegate, which other VirtualServices include
	delegate := len(spec.Hosts) == 0
	c.that(!delegate || len(spec.Gateways) == 0, "spec.hosts",
		"expected at least one host; only a delegate, which has no gateways, has none")
	c.gateways("spec.gateways", spec.Gateways)
	inMesh := !delegate && (len(spec.Gateways) == 0 || slices.Contains(spec.Gateways, meshGateway))
	hosts, listed := newHostSet(spec.Hosts), set[string]{}
	for i, h := range spec.Hosts {
		at := item("spec.hosts", i)
		c.routedHost(at, h)
		c.that(!inMesh || h != "*", at, `expected a host in the mesh, "*" is for gateways only`)
		c.that(firstTime(listed, h), at, "%q is listed twice", h)
		if over, ok := hosts.wildcard(h, i); ok {
			c.that(false, item("spec.hosts", max(i, over)), "expected hosts that do not overlap, got %q and %q",
				spec.Hosts[min(i, over)], spec.Hosts[max(i, over)])
		}
	}
	c.hostRoutes(spec)
	c.claims(spec)
	c.that(len(spec.Http)+len(spec.Tcp)+len(spec.Tls) > 0, "spec", "expected http, tcp or tls")
	c.that(!delegate || len(spec.Tcp)+len(spec.Tls) == 0, "spec", "expected only http in a delegate")
	for i, r := range spec.Http {
		c.httpRoute(item("spec.http", i), r, delegate)
	}
	for i, r := range spec.Tls {
		c.tlsRoute(item("spec.tls", i), r, hosts, o.Namespace)
	}
	for i, r := range spec.Tcp {
		at := item("spec.tcp", i)
		for j, m := range r.GetMatch() {
			c.streamMatch(item(at+".match", j), m)
		}
		c.streamDestinations(at, r.GetRoute())
	}
	c.exportTo(spec.ExportTo, o.Namespace, false)
	return c.first
}

// claims refuses matches on token claims, which only gateways can evaluate, in routes for the mesh alone.
func (c *check) claims(spec *networking.VirtualService) {
	if len(spec.Hosts) == 0 || slices.ContainsFunc(spec.Gateways, func(g string) bool { return g != meshGateway }) {
		return
	}
	for i, r := range spec.Http {
		for j, m := range r.GetMatch() {
			for field, headers := range map[string]map[string]*networking.StringMatch{".headers": m.GetHeaders(),
				".withoutHeaders": m.GetWithoutHeaders()} {
				for _, name := range slices.Sorted(maps.Keys(headers)) {
					c.that(value.RoutingClaim(name) == nil,
						member(item(item("spec.http", i)+".match", j)+field,
							name), "expected a gateway in spec.gateways: only gateways route by claims")
				}
			}
		}
	}
}

// routedHost checks a host that clients can ask for: a name, a wildcard, or an address.
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
		c.that((ns == "." || isLabel(ns)) && isDomain(name), item(at, i),
			`expected "mesh", a name, or namespace/name, got %q`, g)
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
	total := int64(0)
	for i, d := range r.Route {
		to := item(at+".route", i)
		c.destination(to+".destination", d.GetDestination(), true)
		c.headers(to+".headers", d.GetHeaders())
		if len(r.Route) == 1 { // header operations of the only destination apply to the route as a whole
			c.additions(to+".headers", r.Headers, d.GetHeaders())
		}
		c.that(d.GetWeight() >= 0, to+".weight", "expected a weight of at least 0, got %d", d.GetWeight())
		total += int64(d.GetWeight())
	}
	c.that(len(r.Route) < 2 || total > 0, at+".route", "expected weights that add up to more than 0")
	c.that(total <= math.MaxUint32, at+".route", "expected weights that add up to at most %d, got %d",
		uint32(math.MaxUint32), total)
}

// httpAction checks that a route does exactly one thing.
func (c *check) httpAction(at string, r *networking.HTTPRoute, delegate bool) {
	if r.Delegate != nil {
		c.that(!delegate, at+".delegate", "expected no delegate in a delegate")
		c.that(r.Redirect == nil && len(r.Route) == 0 && r.DirectResponse == nil, at,
			"expected delegate alone, without route, redirect or directResponse")
		c.that(r.Delegate.GetName() != "", at+".delegate.name", "expected the name of a VirtualService")
		return
	}
	c.that(len(r.Route) > 0 || r.Redirect != nil || r.DirectResponse != nil, at+".route",
		"expected route, redirect or directResponse")
	c.that(r.Redirect == nil || r.DirectResponse == nil, at, "expected only one of redirect and directResponse")
	c.that(len(r.Route) == 0 || r.Redirect == nil && r.DirectResponse == nil, at,
		"expected only one of route, redirect and directResponse")
	c.that(r.Redirect == nil || r.Fault == nil, at+".fault", "expected no fault beside redirect")
	c.that(len(r.Route) > 0 || r.Rewrite == nil, at+".rewrite", "expected rewrite only beside route")
	if d := r.DirectResponse; d != nil {
		c.within(at+".directResponse.status", int64(d.GetStatus()), 200, 599)
		c.that(len(d.GetBody().GetString_())+len(d.GetBody().GetBytes()) <= 1<<20, at+".directResponse.body",
			"expected at most 1 MiB")
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
	c.line(at+".uri", m.GetUri().GetPrefix()+m.GetUri().GetExact())
	c.headerMatches(at+".headers", m.GetHeaders())
	c.headerMatches(at+".withoutHeaders", m.GetWithoutHeaders())
	for _, name := range slices.Sorted(maps.Keys(m.GetQueryParams())) {
		const longest = 1024
		in := member(at+".queryParams", name)
		c.that(name != "" && len(name) <= longest, in, "expected the name of a parameter, of at most %d bytes", longest)
		c.match(in, m.GetQueryParams()[name])
	}
	c.optionalPort(at+".port", m.GetPort())
	c.labels(at+".sourceLabels", m.GetSourceLabels())
	c.gateways(at+".gateways", m.GetGateways())
	c.that(m.GetSourceNamespace() == "" || isLabel(m.GetSourceNamespace()), at+".sourceNamespace",
		"expected a namespace, got %q", m.GetSourceNamespace())
}

func (c *check) headerMatches(at string, matches map[string]*networking.StringMatch) {
	for _, name := range slices.Sorted(maps.Keys(matches)) {
		if path := value.RoutingClaim(name); path == nil {
			c.header(member(at, name), name)
		} else {
			c.that(!slices.Contains(path, ""), member(at, name), "expected a claim, got an empty part of its path")
		}
		c.match(member(at, name), matches[name])
	}
}

// headers checks header operations. The only pseudo header of a request that can be set is its authority.
func (c *check) headers(at string, h *networking.Headers) {
	c.operations(at+".request", h.GetRequest(), true)
	c.operations(at+".response", h.GetResponse(), false)
	c.additions(at, h)
}

func (c *check) operations(at string, o *networking.Headers_HeaderOperations, request bool) {
	c.changes(at+".set", o.GetSet(), request)
	c.changes(at+".add", o.GetAdd(), request)
	for i, name := range o.GetRemove() {
		c.operation(item(at+".remove", i), name, false)
	}
}

// additions checks how many headers are set and added together by a route and its only destination. at is the path of
// the last of these operations.
func (c *check) additions(at string, all ...*networking.Headers) {
	const most = 1000
	requests, responses := 0, 0
	for _, h := range all {
		requests += len(h.GetRequest().GetSet()) + len(h.GetRequest().GetAdd())
		responses += len(h.GetResponse().GetSet()) + len(h.GetResponse().GetAdd())
	}
	c.that(requests <= most, at+".request", "expected at most %d headers to set and add, got %d", most, requests)
	c.that(responses <= most, at+".response", "expected at most %d headers to set and add, got %d", most, responses)
}

func (c *check) changes(at string, values map[string]string, request bool) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		in := member(at, name)
		c.operation(in, name, request)
		c.line(in, values[name])
		if !isAuthority(name) { // Envoy takes the authority's replacement literally
			err := envoytext.Format(values[name])
			c.that(err == nil, in, "expected a header's value as Envoy formats it: %v", err)
		}
	}
}

func isAuthority(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

func (c *check) operation(at, name string, authority bool) {
	c.that(name != "", at, "expected a header's name, got an empty one")
	c.line(at, name)
	c.that(authority && isAuthority(name) || !isAuthority(name) && !strings.HasPrefix(name, ":"), at,
		"header %q cannot be changed here", name)
}

func (c *check) cors(at string, p *networking.CorsPolicy) {
	for i, o := range p.GetAllowOrigins() {
		in := item(at+".allowOrigins", i)
		c.match(in, o)
		c.that(o.GetExact()+o.GetPrefix()+o.GetRegex() != "", in, "expected an origin, got an empty one")
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
	for i, m := range p.GetAllowMethods() {
		known := []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "CONNECT", "*"}
		c.that(slices.Contains(known, m), item(at+".allowMethods", i), "expected a method of HTTP, got %q", m)
	}
	c.duration(at+".maxAge", p.GetMaxAge(), true)
	c.that(p.GetMaxAge().GetNanos() == 0, at+".maxAge", "expected whole seconds")
}

func (c *check) fault(at string, f *networking.HTTPFaultInjection) {
	c.that(f == nil || f.Delay != nil || f.Abort != nil, at, "expected delay or abort")
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
			var code codes.Code
			err := code.UnmarshalJSON([]byte(strconv.Quote(t.GrpcStatus)))
			c.that(err == nil, at+".abort.grpcStatus", "expected the name of a gRPC status, such as NOT_FOUND, got %q",
				t.GrpcStatus)
		case *networking.HTTPFaultInjection_Abort_Http2Error:
			c.that(false, at+".abort.http2Error", "expected httpStatus or grpcStatus")
		}
	}
}

func (c *check) mirrors(at string, r *networking.HTTPRoute) {
	c.that(r.Mirror == nil || len(r.Mirrors) == 0, at+".mirrors", "expected only one of mirror and mirrors")
	c.destination(at+".mirror", r.Mirror, false)
	c.percent(at+".mirrorPercentage", r.MirrorPercentage)
	//lint:ignore SA1019 older objects still use it
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
	c.that(r.GetUri() != "" || r.GetAuthority() != "" || r.GetScheme() != "" || r.GetRedirectCode() != 0 ||
		r.GetRedirectPort() != nil || r.GetPrefixRewrite() != "",
		at, "expected at least one of uri, authority, scheme, port and redirectCode")
	c.that(r.GetRedirectCode() == 0 || slices.Contains([]uint32{301, 302, 303, 307, 308}, r.GetRedirectCode()),
		at+".redirectCode",
		"expected 301, 302, 303, 307 or 308, got %d", r.GetRedirectCode())
	c.that(slices.Contains([]string{"", "http", "https"}, r.GetScheme()), at+".scheme",
		"expected http or https, got %q", r.GetScheme())
	c.optionalPort(at+".port", r.GetPort())
	c.line(at+".uri", r.GetUri())
	c.line(at+".authority", r.GetAuthority())
}

func (c *check) retries(at string, r *networking.HTTPRetry) {
	c.that(r.GetAttempts() >= 0, at+".attempts", "expected a number of at least 0, got %d", r.GetAttempts())
	c.that(r == nil || r.Attempts > 0 || r.PerTryTimeout == nil && r.RetryOn == "" && r.RetryRemoteLocalities == nil,
		at+".attempts", "expected at least 1 beside perTryTimeout, retryOn and retryRemoteLocalities")
	c.duration(at+".perTryTimeout", r.GetPerTryTimeout(), true)
	c.positive(at+".backoff", r.GetBackoff())
	for _, on := range strings.Split(r.GetRetryOn(), ",") {
		on = strings.TrimSpace(on)
		if n, err := strconv.Atoi(on); err == nil {
			c.within(at+".retryOn", int64(n), 100, 599)
			continue
		}
		c.that(on == "" || slices.Contains(retryConditions(), on), at+".retryOn",
			"expected conditions and status codes, %q is neither", on)
	}
}

// retryConditions returns the retry conditions that Envoy knows.
func retryConditions() []string {
	return []string{
		"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "retriable-4xx", "refused-stream",
		"retriable-status-codes",
		"retriable-headers", "envoy-ratelimited", "http3-post-connect-failure", "cancelled", "deadline-exceeded",
		"internal", "resource-exhausted",
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
		c.template(at+".uriRegexRewrite.rewrite", x)
	}
	c.line(at+".uri", r.GetUri())
	c.line(at+".authority", r.GetAuthority())
}

// template checks the text that replaces what an expression matches.
func (c *check) template(at string, x *networking.RegexRewrite) {
	if c.first != nil {
		return
	}
	err := envoytext.Template(x.GetRewrite(), x.GetMatch())
	c.that(err == nil, at, "expected a rewrite that fits the expression: %v", err)
	c.line(at, x.GetRewrite())
}

func (c *check) destination(at string, d *networking.Destination, required bool) {
	c.that(d != nil || !required, at, "expected a destination")
	if d == nil {
		return
	}
	c.that(d.GetHost() != "*", at+".host", `expected a host, "*" cannot be routed to`)
	c.routedHost(at+".host", d.GetHost())
	c.that(d.GetSubset() == "" || isLabel(d.GetSubset()), at+".subset", "expected the name of a subset, got %q",
		d.GetSubset())
	if d.GetPort() != nil {
		c.port(at+".port.number", d.GetPort().GetNumber())
	}
}
