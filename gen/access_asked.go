package gen

import (
	"cmp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httpaskpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	httprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcpaskpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	tcprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotd/pilotd/gen/check"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Policies of CustomAction are two filters: one finds out, without deciding, which of their rules a request matches,
// and notes its name; the other asks a server about requests with such a note. Where no server can be asked, there is
// one filter that denies what the rules match.
const (
	httpAsk = "envoy.filters.http.ext_authz"
	tcpAsk  = "envoy.filters.network.ext_authz"

	askedPrefix = "istio_ext_authz_"
	askedNote   = askedPrefix + "shadow_effective_policy_id"
	askedRule   = "istio-ext-authz-"
	deniedRule  = "-deny-due-to-bad-CUSTOM-action"
)

// askTime is how long a server may take where nothing says how long.
const askTime = 600

// asks reports whether a server is asked, in a chain of bytes or of HTTP.
func (k AccessKey) asks(bytes bool) bool {
	p := k.Policies.Asked.Provider
	return !k.GRPC && p != nil && (p.GRPC || !bytes) && len(k.badProvider()) == 0
}

// hasCustom reports whether policies of CustomAction mean something in a chain of bytes or of HTTP: a server that
// speaks HTTP is not asked about bytes.
func (k AccessKey) hasCustom(bytes bool) bool {
	p := k.Policies.Asked.Provider
	return !k.GRPC && k.Policies.Asked != value.Asked{} && (p == nil || p.GRPC || !bytes || len(k.badProvider()) > 0)
}

// customRules returns those of the policies of CustomAction, by names that tell whether a server is asked about them.
func (k AccessKey) customRules(bytes bool) *rbacpb.RBAC {
	out := &rbacpb.RBAC{Action: rbacpb.RBAC_DENY, Policies: map[string]*rbacpb.Policy{}}
	end := ""
	if !k.asks(bytes) {
		end = deniedRule
	}
	for p := range k.Policies.Authorization.All() {
		if p.Action != value.CustomAction || p.DryRun {
			continue
		}
		for name, rule := range k.policy(p, bytes) {
			out.Policies[askedRule+p.Provider+"-"+name+end] = rule
		}
	}
	return out
}

// customHTTP returns the filter for the rules of policies of CustomAction in HTTP connection managers.
func customHTTP() filterRow[HTTPConnectionManagerKey] {
	return filterRow[HTTPConnectionManagerKey]{name: httpRBAC,
		applies: func(k HTTPConnectionManagerKey) bool { return k.Access.hasCustom(false) },
		config: func(k HTTPConnectionManagerKey) *anypb.Any {
			rules := k.Access.customRules(false)
			if !k.Access.asks(false) {
				return anySorted(&httprbacpb.RBAC{Rules: rules})
			}
			return anySorted(&httprbacpb.RBAC{ShadowRules: rules, ShadowRulesStatPrefix: askedPrefix})
		}}
}

// customTCP returns the filter for the rules of policies of CustomAction in chains of bytes.
func customTCP() filterRow[filterChain] {
	return filterRow[filterChain]{name: tcpRBAC,
		applies: func(c filterChain) bool { return c.http == nil && c.access.hasCustom(true) },
		config: func(c filterChain) *anypb.Any {
			rules := c.access.customRules(true)
			if !c.access.asks(true) {
				return anySorted(&tcprbacpb.RBAC{Rules: rules, StatPrefix: "tcp."})
			}
			return anySorted(&tcprbacpb.RBAC{ShadowRules: rules, ShadowRulesStatPrefix: askedPrefix, StatPrefix: "tcp."})
		}}
}

// askHTTP returns the filter that asks a server about requests.
func askHTTP() filterRow[HTTPConnectionManagerKey] {
	return filterRow[HTTPConnectionManagerKey]{name: httpAsk,
		applies: func(k HTTPConnectionManagerKey) bool { return k.Access.asks(false) },
		config: func(k HTTPConnectionManagerKey) *anypb.Any {
			return anySorted(askOverHTTP(k.Access.Policies.Asked.Provider))
		}}
}

// askTCP returns the filter that asks a server about connections.
func askTCP() filterRow[filterChain] {
	return filterRow[filterChain]{name: tcpAsk,
		applies: func(c filterChain) bool { return c.http == nil && c.access.asks(true) },
		config:  func(c filterChain) *anypb.Any { return anySorted(askOverTCP(c.access.Policies.Asked.Provider)) }}
}

func askOverTCP(p *value.AuthorizationProvider) *tcpaskpb.ExtAuthz {
	if p == nil {
		return &tcpaskpb.ExtAuthz{}
	}
	return &tcpaskpb.ExtAuthz{StatPrefix: "tcp.", FailureModeAllow: p.FailOpen, TransportApiVersion: corev3.ApiVersion_V3,
		GrpcService: askService(p), FilterEnabledMetadata: askedAbout(tcpRBAC, p)}
}

func askOverHTTP(p *value.AuthorizationProvider) *httpaskpb.ExtAuthz {
	if p == nil {
		return &httpaskpb.ExtAuthz{}
	}
	out := &httpaskpb.ExtAuthz{FailureModeAllow: p.FailOpen, ClearRouteCache: p.ClearRouteCache,
		TransportApiVersion: corev3.ApiVersion_V3, FilterEnabledMetadata: askedAbout(httpRBAC, p),
		AllowedHeaders: headerList(p.RequestHeaders)}
	if p.StatusOnError != 0 {
		out.StatusOnError = &typepb.HttpStatus{Code: typepb.StatusCode(p.StatusOnError)}
	}
	if b := p.Body; b != nil {
		out.WithRequestBody = &httpaskpb.BufferSettings{MaxRequestBytes: b.Most, AllowPartialMessage: b.Partial,
			PackAsBytes: b.Bytes}
	}
	if p.GRPC {
		out.Services = &httpaskpb.ExtAuthz_GrpcService{GrpcService: askService(p)}
		return out
	}
	service := &httpaskpb.HttpService{PathPrefix: p.PathPrefix, ServerUri: &corev3.HttpUri{Uri: "http://" + p.Host,
		Timeout: askTimeout(p), HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: askCluster(p)}}}
	for _, h := range p.Added {
		if service.AuthorizationRequest == nil {
			service.AuthorizationRequest = &httpaskpb.AuthorizationRequest{}
		}
		service.AuthorizationRequest.HeadersToAdd = append(service.AuthorizationRequest.HeadersToAdd,
			&corev3.HeaderValue{Key: h.Name, Value: h.Value})
	}
	if len(p.Upstream)+len(p.Denied)+len(p.Allowed) > 0 {
		service.AuthorizationResponse = &httpaskpb.AuthorizationResponse{
			AllowedUpstreamHeaders: headerList(p.Upstream), AllowedClientHeaders: headerList(p.Denied),
			AllowedClientHeadersOnSuccess: headerList(p.Allowed)}
	}
	out.Services = &httpaskpb.ExtAuthz_HttpService{HttpService: service}
	return out
}

// askService returns the gRPC service that is asked. A cluster's name is no authority, for it has bars in it.
func askService(p *value.AuthorizationProvider) *corev3.GrpcService {
	return &corev3.GrpcService{Timeout: askTimeout(p), TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: askCluster(p), Authority: p.Host}}}
}

func askCluster(p *value.AuthorizationProvider) string { return ClusterName(p.Port, "", p.Host) }

func askTimeout(p *value.AuthorizationProvider) *durationpb.Duration {
	if !p.Timeout.Set {
		return &durationpb.Duration{Seconds: askTime}
	}
	return duration(p.Timeout)
}

// askedAbout matches what the rules of policies that name a server have noted.
func askedAbout(filter string, p *value.AuthorizationProvider) *matcherpb.MetadataMatcher {
	return metadataMatch(stringValue(&matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Prefix{
		Prefix: askedRule + p.Name + "-"}}), filter, askedNote)
}

// headerList matches headers of these names, which may begin or end in "*"; nil if there are none.
func headerList(names []string) *matcherpb.ListStringMatcher {
	if len(names) == 0 {
		return nil
	}
	out := &matcherpb.ListStringMatcher{}
	for _, n := range names {
		m := &matcherpb.StringMatcher{IgnoreCase: true}
		if rest, ok := strings.CutPrefix(n, "*"); ok {
			m.MatchPattern = &matcherpb.StringMatcher_Suffix{Suffix: rest}
		} else if rest, ok := strings.CutSuffix(n, "*"); ok {
			m.MatchPattern = &matcherpb.StringMatcher_Prefix{Prefix: rest}
		} else {
			m.MatchPattern = &matcherpb.StringMatcher_Exact{Exact: n}
		}
		out.Patterns = append(out.Patterns, m)
	}
	return out
}

// badProvider returns what Envoy would refuse of what is made of the server's description.
func (k AccessKey) badProvider() []check.Fault {
	p := k.Policies.Asked.Provider
	if p == nil {
		return nil
	}
	return check.Message(askOverHTTP(p))
}

// customFaults returns, for each policy of CustomAction, why no server is asked; none where one is.
func (k AccessKey) customFaults() (out []Fault) {
	reason := k.Policies.Asked.Problem
	for _, f := range k.badProvider() {
		reason = cmp.Or(reason, "extension provider "+k.Policies.Asked.Provider.Name+": "+f.Reason)
	}
	if k.GRPC {
		reason = "a gRPC server without a proxy asks no provider"
	}
	for p := range k.Policies.Authorization.All() {
		if p.Action != value.CustomAction {
			continue
		}
		told := reason + ": what the rules match is denied"
		if p.DryRun {
			told = "a policy of action CUSTOM that is tried only has no effect"
		} else if reason == "" {
			continue
		}
		out = append(out, Fault{Fault: check.Fault{Path: "provider.name", Reason: told}, Of: one(p.Object())})
	}
	return out
}
