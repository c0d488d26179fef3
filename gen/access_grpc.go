package gen

import (
	"slices"
	"strings"

	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// accessGRPC returns the filter of gRPC servers without a proxy for the policies of some actions. Such a server asks
// nobody, counts nothing and tries nothing: what a provider would decide is denied, and rules of policies that audit or
// are tried only have no filter. It refuses two filters of one name.
func accessGRPC(name string, effect rbacpb.RBAC_Action,
	actions ...value.AuthorizationAction) filterRow[HTTPConnectionManagerKey] {
	counts := func(p *value.AuthorizationPolicy) bool { return !p.DryRun && slices.Contains(actions, p.Action) }
	return filterRow[HTTPConnectionManagerKey]{name: name,
		applies: func(k HTTPConnectionManagerKey) bool {
			for p := range k.Access.Policies.Authorization.All() {
				if k.Access.GRPC && counts(p) {
					return true
				}
			}
			return false
		},
		config: func(k HTTPConnectionManagerKey) *anypb.Any {
			rules := &rbacpb.RBAC{Action: effect, Policies: map[string]*rbacpb.Policy{}}
			for p := range k.Access.Policies.Authorization.All() {
				if !counts(p) {
					continue
				}
				for name, rule := range k.Access.policy(p, false) {
					rules.Policies[name] = rule
				}
			}
			return anySorted(&httprbacpb.RBAC{Rules: rules})
		}}
}

// foreignToGRPC reports whether a gRPC server cannot be asked for a condition: it knows nothing of tokens, metadata and
// server names, passes some matches over, and refuses its whole configuration for others.
func foreignToGRPC(c value.AccessCondition) bool {
	switch c.Attribute {
	case value.RequestPrincipal, value.RequestAudience, value.RequestPresenter, value.RequestClaim, value.ConnectionSNI,
		value.FilterMetadata:
		return true
	case value.RequestHeader:
		name := strings.ToLower(c.Path[0])
		return name == ":scheme" || strings.HasPrefix(name, "grpc-")
	case value.RequestPath:
		return slices.ContainsFunc(slices.Concat(c.Values, c.NotValues), value.IsPathTemplate)
	}
	return false
}
