package check_test

import (
	"strings"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/gen/check"
)

// expect holds faults against the path of the only one that there should be; none if it is empty.
func expect(t *testing.T, got []check.Fault, path string) {
	t.Helper()
	if path == "" {
		if len(got) > 0 {
			t.Errorf("found %v in what is fine", got)
		}
		return
	}
	for _, f := range got {
		if strings.HasPrefix(f.Path, path) && f.Reason != "" {
			return
		}
	}
	t.Errorf("found %v, want a fault at %s", got, path)
}

func cluster(name string) *routepb.RouteAction {
	return &routepb.RouteAction{ClusterSpecifier: &routepb.RouteAction_Cluster{Cluster: name}}
}

func weights(w ...uint32) *routepb.RouteAction {
	out := &routepb.WeightedCluster{}
	for _, n := range w {
		out.Clusters = append(out.Clusters, &routepb.WeightedCluster_ClusterWeight{Name: "a",
			Weight: wrapperspb.UInt32(n)})
	}
	return &routepb.RouteAction{ClusterSpecifier: &routepb.RouteAction_WeightedClusters{WeightedClusters: out}}
}

func header(name, value string) []*corepb.HeaderValueOption {
	return []*corepb.HeaderValueOption{{Header: &corepb.HeaderValue{Key: name, Value: value}}}
}

func regex(s string) *matcherpb.RegexMatcher { return &matcherpb.RegexMatcher{Regex: s} }

// TestRoutes: each rule about routes, by what breaks it.
func TestRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *routepb.Route, a *routepb.RouteAction)
		path   string
	}{
		"fine": {func(*routepb.Route, *routepb.RouteAction) {}, ""},
		"empty regex": {func(r *routepb.Route, _ *routepb.RouteAction) { r.Match = match(regex("")) },
			"routes[0].match.safe_regex"},
		"no regex": {func(r *routepb.Route, _ *routepb.RouteAction) { r.Match = match(regex("a(")) },
			"routes[0].match.safe_regex"},
		"lookahead": {func(r *routepb.Route, _ *routepb.RouteAction) { r.Match = match(regex("(?=a)")) },
			"routes[0].match.safe_regex"},
		"line break in a name": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.RequestHeadersToAdd = header("a\nb",
				"v")
		}, "routes[0].request_headers_to_add[0]"},
		"unknown command": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.RequestHeadersToAdd = header("a",
				"%NOTHING%")
		}, "routes[0].request_headers_to_add[0]"},
		"lone percent sign": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.ResponseHeadersToAdd = header("a",
				"100%")
		}, "routes[0].response_headers_to_add[0]"},
		"known command": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.RequestHeadersToAdd = header("a", "%DOWNSTREAM_REMOTE_ADDRESS%")
		}, ""},
		"value too long": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.RequestHeadersToAdd = header("a", strings.Repeat("v", 16385))
		}, "routes[0].request_headers_to_add[0]"},
		"pseudo header": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.RequestHeadersToAdd = header(":path",
				"v")
		}, "routes[0].request_headers_to_add[0]"},
		"removed host": {func(r *routepb.Route,
			_ *routepb.RouteAction) {
			r.RequestHeadersToRemove = []string{"Host"}
		}, "routes[0].request_headers_to_remove[0]"},
		"line break removed": {func(r *routepb.Route,
			_ *routepb.RouteAction) {
			r.ResponseHeadersToRemove = []string{"a\r\n"}
		}, "routes[0].response_headers_to_remove[0]"},
		"1001 headers": {func(r *routepb.Route, _ *routepb.RouteAction) {
			for range 1001 {
				r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, header("a", "v")...)
			}
		}, "routes[0].request_headers_to_add"},
		"line break rewritten": {func(_ *routepb.Route, a *routepb.RouteAction) { a.PrefixRewrite = "/\n" },
			"routes[0].route.prefix_rewrite"},
		"unknown group": {func(_ *routepb.Route, a *routepb.RouteAction) {
			a.RegexRewrite = &matcherpb.RegexMatchAndSubstitute{Pattern: regex("(a)"), Substitution: `\2`}
		}, "routes[0].route.regex_rewrite"},
		"two rewrites": {func(_ *routepb.Route, a *routepb.RouteAction) {
			a.PrefixRewrite = "/a"
			a.RegexRewrite = &matcherpb.RegexMatchAndSubstitute{Pattern: regex("(a)"), Substitution: `\1`}
		}, "routes[0].route"},
		"weights beyond uint32": {func(_ *routepb.Route, a *routepb.RouteAction) {
			proto.Reset(a)
			proto.Merge(a,
				weights(1<<31, 1<<31))
		}, "routes[0].route.weighted_clusters"},
		"weights up to uint32": {func(_ *routepb.Route, a *routepb.RouteAction) {
			proto.Reset(a)
			proto.Merge(a, weights(1<<31, 1<<31-1))
		}, ""},
		"no weight": {func(_ *routepb.Route, a *routepb.RouteAction) { proto.Reset(a); proto.Merge(a, weights(0)) },
			"routes[0].route.weighted_clusters"},
		"backoff of 0s": {func(_ *routepb.Route,
			a *routepb.RouteAction) {
			a.RetryPolicy = backoff(&durationpb.Duration{})
		}, "routes[0].route.retry_policy"},
		"backoff below 1ms": {func(_ *routepb.Route, a *routepb.RouteAction) {
			a.RetryPolicy = backoff(&durationpb.Duration{Nanos: 10})
		}, "routes[0].route.retry_policy"},
		"negative timeout": {func(_ *routepb.Route,
			a *routepb.RouteAction) {
			a.Timeout = &durationpb.Duration{Seconds: -1}
		}, "routes[0].route.timeout"},
		"hash on an empty query": {func(_ *routepb.Route, a *routepb.RouteAction) {
			a.HashPolicy = []*routepb.RouteAction_HashPolicy{{PolicySpecifier: &routepb.RouteAction_HashPolicy_QueryParameter_{
				QueryParameter: &routepb.RouteAction_HashPolicy_QueryParameter{}}}}
		}, "routes[0].route.hash_policy[0]"},
		"hash by a negative ttl": {func(_ *routepb.Route, a *routepb.RouteAction) {
			a.HashPolicy = []*routepb.RouteAction_HashPolicy{{PolicySpecifier: &routepb.RouteAction_HashPolicy_Cookie_{
				Cookie: &routepb.RouteAction_HashPolicy_Cookie{Name: "c", Ttl: &durationpb.Duration{Seconds: -1}}}}}
		}, "routes[0].route.hash_policy[0]"},
		"line break in redirect": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.Action = &routepb.Route_Redirect{Redirect: &routepb.RedirectAction{HostRedirect: "a\nb"}}
		}, "routes[0].redirect"},
		"body too long": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.Action = &routepb.Route_DirectResponse{DirectResponse: &routepb.DirectResponseAction{Status: 200,
				Body: &corepb.DataSource{Specifier: &corepb.DataSource_InlineString{InlineString: strings.Repeat("b",
					1<<20+1)}}}}
		}, "routes[0].direct_response"},
		"status": {func(r *routepb.Route, _ *routepb.RouteAction) {
			r.Action = &routepb.Route_DirectResponse{DirectResponse: &routepb.DirectResponseAction{Status: 999}}
		}, "routes[0].direct_response"},
		"nowhere": {func(r *routepb.Route, _ *routepb.RouteAction) { r.Action = nil }, "routes[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			a := cluster("a")
			r := &routepb.Route{Match: &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routepb.Route_Route{Route: a}}
			c.change(r, a)
			expect(t, check.VirtualHost(&routepb.VirtualHost{Name: "v", Domains: []string{"*"},
				Routes: []*routepb.Route{r}}, 0), c.path)
		})
	}
	expect(t, check.VirtualHost(&routepb.VirtualHost{Name: "v", Domains: []string{"a.b", "A.b"}}, 0), "domains[1]")
}

// TestRegexSizes: an expression above the limit is found wherever a route has one, and nowhere without a limit.
func TestRegexSizes(t *testing.T) {
	large := regex("[0-9a-f-]{120}")
	text := &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_SafeRegex{SafeRegex: large}}
	rewrite := &matcherpb.RegexMatchAndSubstitute{Pattern: large, Substitution: "x"}
	cors, err := anypb.New(&corspb.CorsPolicy{AllowOriginStringMatch: []*matcherpb.StringMatcher{text}})
	if err != nil {
		t.Fatal(err)
	}
	for path, change := range map[string]func(r *routepb.Route){
		"match.safe_regex": func(r *routepb.Route) { r.Match = match(large) },
		"match.headers[0].string_match.safe_regex": func(r *routepb.Route) {
			r.Match.Headers = []*routepb.HeaderMatcher{{Name: "x",
				HeaderMatchSpecifier: &routepb.HeaderMatcher_StringMatch{StringMatch: text}}}
		},
		"match.query_parameters[0].string_match.safe_regex": func(r *routepb.Route) {
			r.Match.QueryParameters = []*routepb.QueryParameterMatcher{{Name: "x",
				QueryParameterMatchSpecifier: &routepb.QueryParameterMatcher_StringMatch{StringMatch: text}}}
		},
		"route.regex_rewrite.pattern": func(r *routepb.Route) { r.GetRoute().RegexRewrite = rewrite },
		"typed_per_filter_config[envoy.filters.http.cors].allow_origin_string_match[0].safe_regex": func(r *routepb.Route) {
			r.TypedPerFilterConfig = map[string]*anypb.Any{"envoy.filters.http.cors": cors}
		},
	} {
		r := &routepb.Route{Match: &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routepb.Route_Route{Route: cluster("a")}}
		change(r)
		v := &routepb.VirtualHost{Name: "v", Domains: []string{"*"}, Routes: []*routepb.Route{r}}
		expect(t, check.VirtualHost(v, 0), "")
		expect(t, check.VirtualHost(v, 32768), "")
		expect(t, check.VirtualHost(v, 100), "routes[0]."+path)
	}
}

func match(r *matcherpb.RegexMatcher) *routepb.RouteMatch {
	return &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_SafeRegex{SafeRegex: r}}
}

func backoff(d *durationpb.Duration) *routepb.RetryPolicy {
	return &routepb.RetryPolicy{RetryBackOff: &routepb.RetryPolicy_RetryBackOff{BaseInterval: d}}
}

func at(address string, port uint32) *corepb.Address {
	return &corepb.Address{Address: &corepb.Address_SocketAddress{SocketAddress: &corepb.SocketAddress{Address: address,
		PortSpecifier: &corepb.SocketAddress_PortValue{PortValue: port}}}}
}

func pipe(path string) *corepb.Address {
	return &corepb.Address{Address: &corepb.Address_Pipe{Pipe: &corepb.Pipe{Path: path}}}
}

func endpoint(a *corepb.Address, weight uint32) *endpointpb.LbEndpoint {
	return &endpointpb.LbEndpoint{LoadBalancingWeight: wrapperspb.UInt32(weight),
		HostIdentifier: &endpointpb.LbEndpoint_Endpoint{Endpoint: &endpointpb.Endpoint{Address: a}}}
}

func assignment(e ...*endpointpb.LbEndpoint) *endpointpb.ClusterLoadAssignment {
	return &endpointpb.ClusterLoadAssignment{ClusterName: "c",
		Endpoints: []*endpointpb.LocalityLbEndpoints{{LbEndpoints: e}}}
}

// TestClusters: each rule about clusters, by what breaks it.
func TestClusters(t *testing.T) {
	typ := func(t clusterpb.Cluster_DiscoveryType) *clusterpb.Cluster_Type {
		return &clusterpb.Cluster_Type{Type: t}
	}
	ring := func(least uint64) *clusterpb.Cluster_RingHashLbConfig_ {
		return &clusterpb.Cluster_RingHashLbConfig_{
			RingHashLbConfig: &clusterpb.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(least)}}
	}
	maglev := func(n uint64) *clusterpb.Cluster_MaglevLbConfig_ {
		return &clusterpb.Cluster_MaglevLbConfig_{
			MaglevLbConfig: &clusterpb.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(n)}}
	}
	for name, c := range map[string]struct {
		cluster *clusterpb.Cluster
		path    string
	}{
		"fine": {&clusterpb.Cluster{Name: "c", ClusterDiscoveryType: typ(clusterpb.Cluster_STATIC)},
			""},
		"no name": {&clusterpb.Cluster{}, "name"},
		"ring too large": {&clusterpb.Cluster{Name: "c", LbPolicy: clusterpb.Cluster_RING_HASH,
			LbConfig: ring(8388609)}, "ring_hash_lb_config"},
		"largest ring": {&clusterpb.Cluster{Name: "c", LbPolicy: clusterpb.Cluster_RING_HASH,
			LbConfig: ring(8388608)}, ""},
		"maglev not prime": {&clusterpb.Cluster{Name: "c", LbPolicy: clusterpb.Cluster_MAGLEV,
			LbConfig: maglev(65536)}, "maglev_lb_config"},
		"maglev prime": {&clusterpb.Cluster{Name: "c", LbPolicy: clusterpb.Cluster_MAGLEV,
			LbConfig: maglev(65537)}, ""},
		"maglev too large": {&clusterpb.Cluster{Name: "c", LbPolicy: clusterpb.Cluster_MAGLEV,
			LbConfig: maglev(5000077)}, "maglev_lb_config"},
		"warm-up over 100%": {&clusterpb.Cluster{Name: "c",
			LbConfig: &clusterpb.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterpb.Cluster_RoundRobinLbConfig{
				SlowStartConfig: &clusterpb.Cluster_SlowStartConfig{MinWeightPercent: &typepb.Percent{Value: 101}}}}}, "round_robin_lb_config"},
		"no connect timeout": {&clusterpb.Cluster{Name: "c", ConnectTimeout: &durationpb.Duration{}},
			"connect_timeout"},
		"original without policy": {&clusterpb.Cluster{Name: "c",
			ClusterDiscoveryType: typ(clusterpb.Cluster_ORIGINAL_DST)}, "lb_policy"},
		"original with assignment": {&clusterpb.Cluster{Name: "c",
			ClusterDiscoveryType: typ(clusterpb.Cluster_ORIGINAL_DST), LbPolicy: clusterpb.Cluster_CLUSTER_PROVIDED,
			LoadAssignment: assignment()}, "load_assignment"},
		"logical with two": {&clusterpb.Cluster{Name: "c",
			ClusterDiscoveryType: typ(clusterpb.Cluster_LOGICAL_DNS),
			LoadAssignment:       assignment(endpoint(at("a", 1), 1), endpoint(at("b", 1), 1))}, "load_assignment"},
		"dns with a path": {&clusterpb.Cluster{Name: "c",
			ClusterDiscoveryType: typ(clusterpb.Cluster_STRICT_DNS),
			LoadAssignment:       assignment(endpoint(pipe("/a"), 1))}, "load_assignment"},
		"static with a name": {&clusterpb.Cluster{Name: "c", ClusterDiscoveryType: typ(clusterpb.Cluster_STATIC),
			LoadAssignment: assignment(endpoint(at("a.b", 1), 1))}, "load_assignment"},
		"weights beyond uint32": {&clusterpb.Cluster{Name: "c",
			ClusterDiscoveryType: typ(clusterpb.Cluster_STRICT_DNS),
			LoadAssignment:       assignment(endpoint(at("a", 1), 1<<31), endpoint(at("b", 1), 1<<31))},
			"load_assignment"},
		"ejection over 100%": {&clusterpb.Cluster{Name: "c",
			OutlierDetection: &clusterpb.OutlierDetection{MaxEjectionPercent: wrapperspb.UInt32(101)}},
			"outlier_detection"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, check.Cluster(c.cluster), c.path) })
	}
}

// TestEndpoints: each rule about endpoints of an assignment, by what breaks it.
func TestEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint *endpointpb.LbEndpoint
		path     string
	}{
		"fine":            {endpoint(at("10.0.0.1", 80), 1), ""},
		"IPv6":            {endpoint(at("fd00::1", 80), 1), ""},
		"with a zone":     {endpoint(at("fe80::1%eth0", 80), 1), "endpoint.address"},
		"a name":          {endpoint(at("a.b", 80), 1), "endpoint.address"},
		"port over":       {endpoint(at("10.0.0.1", 65536), 1), "endpoint"},
		"no weight":       {endpoint(at("10.0.0.1", 80), 0), "load_balancing_weight"},
		"a path":          {endpoint(pipe("/"+strings.Repeat("p", 106)), 1), ""},
		"path too long":   {endpoint(pipe("/"+strings.Repeat("p", 107)), 1), "endpoint.address"},
		"path is missing": {endpoint(pipe(""), 1), "endpoint"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, check.Endpoint(c.endpoint), c.path) })
	}
}

// TestChains: patterns of server names, and chains of one listener that take the same connections.
func TestChains(t *testing.T) {
	chain := func(m *listenerpb.FilterChainMatch) *listenerpb.FilterChain {
		return &listenerpb.FilterChain{FilterChainMatch: m}
	}
	sni := func(names ...string) *listenerpb.FilterChain {
		return chain(&listenerpb.FilterChainMatch{ServerNames: names})
	}
	for _, bad := range []string{"*foo.com", "*", "a.*", "a*.b"} {
		expect(t, check.FilterChain(sni(bad)), "filter_chain_match.server_names[0]")
	}
	expect(t, check.FilterChain(sni("*.foo.com", "foo.com")), "")
	for name, c := range map[string]struct {
		a, b *listenerpb.FilterChain
		path string
	}{
		"one name in common": {sni("a", "b"), sni("b", "c"), "filter_chain_match"},
		"in another case":    {sni("A"), sni("a"), "filter_chain_match"},
		"other names":        {sni("a"), sni("b"), ""},
		"all and some":       {sni(), sni("b"), ""},
		"all and all":        {chain(nil), chain(&listenerpb.FilterChainMatch{}), "filter_chain_match"},
		"other ports": {chain(&listenerpb.FilterChainMatch{DestinationPort: wrapperspb.UInt32(1)}),
			chain(&listenerpb.FilterChainMatch{DestinationPort: wrapperspb.UInt32(2)}), ""},
		"other transports": {chain(&listenerpb.FilterChainMatch{TransportProtocol: "tls"}),
			chain(&listenerpb.FilterChainMatch{TransportProtocol: "raw_buffer"}), ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, check.Overlap([]*listenerpb.FilterChain{c.a}, c.b), c.path) })
	}
	expect(t, check.Listener(&listenerpb.Listener{Name: "l", Address: at("10.0.0.1", 80)}), "")
	expect(t, check.Listener(&listenerpb.Listener{Name: "l", Address: at("nowhere", 80)}), "address")
	expect(t, check.Listener(&listenerpb.Listener{Name: "l", Address: pipe("")}), "address")
}

// TestPackedMessages: what is wrong with a message that is packed in others, at any depth, is found in the encoded
// bytes of the outermost.
func TestPackedMessages(t *testing.T) {
	pack := func(m proto.Message) *anypb.Any {
		if r := check.Refusal(m); r != "" {
			return &anypb.Any{TypeUrl: r}
		}
		out, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range map[string]struct {
		m    proto.Message
		path string
	}{
		"fine": {&tlspb.UpstreamTlsContext{Sni: "a"}, ""},
		"SNI":  {&tlspb.UpstreamTlsContext{Sni: strings.Repeat("s", 256)}, "UpstreamTlsContext.sni"},
		"hash": {&tlspb.DownstreamTlsContext{
			CommonTlsContext: &tlspb.CommonTlsContext{
				ValidationContextType: &tlspb.CommonTlsContext_ValidationContext{
					ValidationContext: &tlspb.CertificateValidationContext{
						VerifyCertificateHash: []string{strings.Repeat("x", 64)}}}}},
			"DownstreamTlsContext.validation_context.verify_certificate_hash[0]"},
		"TCP proxy": {&tcppb.TcpProxy{StatPrefix: "s", ClusterSpecifier: &tcppb.TcpProxy_Cluster{Cluster: "c"},
			IdleTimeout: &durationpb.Duration{Seconds: -1}}, "TcpProxy.idle_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &listenerpb.FilterChain{Filters: []*listenerpb.Filter{{Name: "f",
				ConfigType: &listenerpb.Filter_TypedConfig{TypedConfig: pack(c.m)}}}}
			outer := &corepb.TransportSocket{Name: "o",
				ConfigType: &corepb.TransportSocket_TypedConfig{TypedConfig: pack(inner)}}
			b, err := proto.Marshal(outer)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, check.Packed(b), c.path)
		})
	}
	if got := check.Packed([]byte("\x00refused\x00 that somebody wrote")); len(got) != 1 {
		t.Errorf("a forged refusal gives %v", got)
	}
}
