package gen

import (
	"cmp"
	"fmt"

	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/gen/check"
	"github.com/pilotd/pilotd/snapshot/value"
)

// AccessKey is what the filters are made from by which a workload takes some requests and connections and refuses
// others. The zero AccessKey makes none. Comparable.
type AccessKey struct {
	Policies value.Policies
	// Settings are the mesh's; they are nil where there are no policies.
	Settings *value.AccessSettings
	// RegexSize is the largest RE2 program of a regular expression that the proxy takes; 0 where package ingest
	// has refused larger ones.
	RegexSize int
	// GRPC tells that the filters are for a gRPC server without a proxy.
	GRPC bool
}

// Names of filters of Envoy that hold rules.
const (
	httpRBAC = "envoy.filters.http.rbac"
	tcpRBAC  = "envoy.filters.network.rbac"
)

// Prefixes under which what shadow rules find is noted.
const (
	dryRunAllow = "istio_dry_run_allow_"
	dryRunDeny  = "istio_dry_run_deny_"
)

// ruleSet are the rules of all policies of one action, and those of policies that are tried only; nil where there is no
// such policy.
type ruleSet struct{ rules, shadow *rbacpb.RBAC }

// has reports whether any policy has that action.
func (k AccessKey) has(a value.AuthorizationAction) bool {
	for p := range k.Policies.Authorization.All() {
		if p.Action == a {
			return true
		}
	}
	return false
}

// rules returns those of the policies of an action, in a chain of bytes or of HTTP.
func (k AccessKey) rules(a value.AuthorizationAction, bytes bool) (out ruleSet) {
	for p := range k.Policies.Authorization.All() {
		if p.Action != a {
			continue
		}
		set := &out.rules
		if p.DryRun {
			set = &out.shadow
		}
		if *set == nil {
			*set = &rbacpb.RBAC{Action: rbacAction(a), Policies: map[string]*rbacpb.Policy{}}
		}
		for name, rule := range k.policy(p, bytes) {
			(*set).Policies[name] = rule
		}
	}
	return out
}

func rbacAction(a value.AuthorizationAction) rbacpb.RBAC_Action {
	switch a {
	case value.AllowAction:
		return rbacpb.RBAC_ALLOW
	case value.AuditAction:
		return rbacpb.RBAC_LOG
	}
	return rbacpb.RBAC_DENY
}

// prefix returns the beginning of the names under which Envoy notes what the shadow rules find.
func (s ruleSet) prefix() string {
	switch s.shadow.GetAction() {
	case rbacpb.RBAC_ALLOW:
		return dryRunAllow
	case rbacpb.RBAC_DENY:
		return dryRunDeny
	}
	return ""
}

// accessHTTP returns the filter for the policies of an action in HTTP connection managers of proxies.
func accessHTTP(a value.AuthorizationAction) filterRow[HTTPConnectionManagerKey] {
	return filterRow[HTTPConnectionManagerKey]{name: httpRBAC,
		applies: func(k HTTPConnectionManagerKey) bool { return !k.Access.GRPC && k.Access.has(a) },
		config: func(k HTTPConnectionManagerKey) *anypb.Any {
			s := k.Access.rules(a, false)
			return anySorted(&httprbacpb.RBAC{Rules: s.rules, ShadowRules: s.shadow, ShadowRulesStatPrefix: s.prefix()})
		}}
}

// accessTCP returns the filter for the policies of an action in chains of bytes.
func accessTCP(a value.AuthorizationAction) filterRow[filterChain] {
	return filterRow[filterChain]{name: tcpRBAC,
		applies: func(c filterChain) bool { return c.http == nil && c.access.has(a) },
		config: func(c filterChain) *anypb.Any {
			s := c.access.rules(a, true)
			return anySorted(&tcprbacpb.RBAC{Rules: s.rules, ShadowRules: s.shadow, ShadowRulesStatPrefix: s.prefix(),
				StatPrefix: "tcp."})
		}}
}

// policy returns what becomes of the rules of a policy, by name. A rule of a policy that allows which asks for what a
// chain of bytes has not allows nothing there; others are as if they did not ask. Where Envoy would refuse a rule, it
// allows nothing, or applies to all.
func (k AccessKey) policy(p *value.AuthorizationPolicy, bytes bool) map[string]*rbacpb.Policy {
	out := map[string]*rbacpb.Policy{}
	name := func(i int) string {
		if k.GRPC {
			return fmt.Sprintf("%s-%s-%d", p.Namespace, p.Name, i)
		}
		return fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, i)
	}
	for i, rule := range p.Rules {
		m := accessMaker{key: k, bytes: bytes, narrow: p.Action == value.AllowAction}
		made := m.rule(rule)
		if m.lost {
			continue
		}
		if len(m.faults(made)) > 0 {
			if made = matchAll(); m.narrow {
				continue
			}
		}
		out[name(i)] = made
	}
	if len(p.Rules) == 0 {
		out[name(0)] = matchNever()
	}
	return out
}

// Faults returns what is wrong with those policies of which Envoy would refuse something, so that they refuse more than
// they say.
func (k AccessKey) Faults() (out []Fault) {
	for p := range k.Policies.Authorization.All() {
		for i, rule := range p.Rules {
			m := accessMaker{key: k}
			for _, f := range m.faults(m.rule(rule)) {
				f.Path = fmt.Sprintf("rules[%d]%s", i, cmp.Or("."+f.Path, ""))
				out = append(out, Fault{Fault: f, Of: one(p.Object())})
			}
		}
	}
	return append(out, k.customFaults()...)
}

// faults returns the rules of Envoy that a made rule breaks.
func (m *accessMaker) faults(p *rbacpb.Policy) []check.Fault {
	return append(check.Message(p), m.regexes...)
}

func matchAll() *rbacpb.Policy {
	return &rbacpb.Policy{Permissions: []*rbacpb.Permission{anything()}, Principals: []*rbacpb.Principal{anybody()}}
}

func matchNever() *rbacpb.Policy {
	return &rbacpb.Policy{Permissions: []*rbacpb.Permission{notPermission(anything())},
		Principals: []*rbacpb.Principal{notPrincipal(anybody())}}
}
