package istio

import (
	"maps"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Authorization returns the value of an AuthorizationPolicy in a namespace, without Meta and what annotations set.
func Authorization(in *security.AuthorizationPolicy, namespace string) *value.AuthorizationPolicy {
	out := &value.AuthorizationPolicy{Provider: in.GetProvider().GetName(),
		PolicyTarget: Target(in.GetSelector(), References(in.GetTargetRef(), in.GetTargetRefs()))}
	switch in.GetAction() {
	case security.AuthorizationPolicy_DENY:
		out.Action = value.DenyAction
	case security.AuthorizationPolicy_AUDIT:
		out.Action = value.AuditAction
	case security.AuthorizationPolicy_CUSTOM:
		out.Action = value.CustomAction
	}
	for _, r := range in.GetRules() {
		out.Rules = append(out.Rules, authorizationRule(r, namespace))
	}
	return out
}

// Target returns which workloads a policy applies to. A policy with target references applies to nothing else, even if
// none of them is a Gateway.
func Target(selector *typev1beta1.WorkloadSelector,
	references []*typev1beta1.PolicyTargetReference) value.PolicyTarget {
	out := value.PolicyTarget{Labels: maps.Clone(selector.GetMatchLabels())}
	for _, r := range references {
		if IsGateway(r) {
			out.Gateways = append(out.Gateways, r.GetName())
		} else {
			out.Elsewhere = true
		}
	}
	return out
}

// IsGateway reports whether a target is a Gateway of the Gateway API.
func IsGateway(r *typev1beta1.PolicyTargetReference) bool {
	return r.GetKind() == "Gateway" && r.GetGroup() == "gateway.networking.k8s.io"
}

// References returns the targets of a policy: one and others, each of which may be missing.
func References(one *typev1beta1.PolicyTargetReference,
	others []*typev1beta1.PolicyTargetReference) []*typev1beta1.PolicyTargetReference {
	if one != nil {
		return append(slices.Clone(others), one)
	}
	return others
}

// conditionKey describes an attribute that conditions of a rule may name.
type conditionKey struct {
	attribute value.AccessAttribute
	// operation says that the attribute describes the request, not its sender.
	operation bool
	// path says that brackets with more names follow the key; nested, that there may be several of them.
	path, nested bool
}

// conditionKeys returns the keys of conditions. A key that continues with a path is listed without its path.
func conditionKeys() map[string]conditionKey {
	return map[string]conditionKey{
		"source.ip":              {attribute: value.SourceIP},
		"remote.ip":              {attribute: value.RemoteIP},
		"source.namespace":       {attribute: value.SourceNamespace},
		"source.serviceAccount":  {attribute: value.SourceServiceAccount},
		"source.trustDomain":     {attribute: value.SourceTrustDomain},
		"source.principal":       {attribute: value.SourcePrincipal},
		"request.auth.principal": {attribute: value.RequestPrincipal},
		"request.auth.audiences": {attribute: value.RequestAudience},
		"request.auth.presenter": {attribute: value.RequestPresenter},
		"request.auth.claims":    {attribute: value.RequestClaim, path: true, nested: true},
		"request.headers":        {attribute: value.RequestHeader, path: true},
		"destination.ip":         {attribute: value.DestinationIP, operation: true},
		"destination.port":       {attribute: value.DestinationPort, operation: true},
		"connection.sni":         {attribute: value.ConnectionSNI, operation: true},
	}
}

const filterKey = "experimental."

// Condition returns the attribute that a condition's key names. ok is false if there is none.
func Condition(key string) (c value.AccessCondition, operation, ok bool) {
	name, rest, bracket := strings.Cut(key, "[")
	if strings.HasPrefix(name, filterKey+"envoy.filters.") {
		inner, closed := strings.CutSuffix(rest, "]")
		return value.AccessCondition{Attribute: value.FilterMetadata, Path: []string{strings.TrimPrefix(name, filterKey),
			inner}}, true, bracket && closed && inner != "" && len(name) > len(filterKey+"envoy.filters.")
	}
	k, known := conditionKeys()[name]
	if !known || k.path != bracket {
		return c, false, false
	}
	c.Attribute = k.attribute
	if !k.path {
		return c, k.operation, true
	}
	inner, closed := strings.CutSuffix(rest, "]")
	if c.Path = []string{inner}; k.nested {
		c.Path = strings.Split(inner, "][")
	}
	return c, k.operation, closed && !slices.Contains(c.Path, "") && !slices.ContainsFunc(c.Path,
		func(s string) bool { return strings.ContainsAny(s, "[]") })
}

// authorizationRule converts a rule. Conditions are in istiod's order: those of a source or an operation first, then
// the others.
func authorizationRule(in *security.Rule, namespace string) (out value.AuthorizationRule) {
	var sources, operations []value.AccessCondition
	for _, w := range in.GetWhen() {
		c, operation, ok := Condition(w.GetKey())
		if !ok {
			continue // checks refuse such a rule
		}
		c.Values, c.NotValues = list(w.GetValues()), list(w.GetNotValues())
		if c.Attribute == value.SourceServiceAccount {
			c.Values, c.NotValues = accounts(c.Values, namespace), accounts(c.NotValues, namespace)
		}
		if operation {
			operations = append(operations, c)
		} else {
			sources = append(sources, c)
		}
	}
	for _, f := range in.GetFrom() {
		out.Sources = append(out.Sources, slices.Concat(source(f.GetSource(), namespace), sources))
	}
	for _, t := range in.GetTo() {
		out.Operations = append(out.Operations, slices.Concat(operation(t.GetOperation()), operations))
	}
	if len(out.Sources) == 0 {
		out.Sources = [][]value.AccessCondition{sources}
	}
	if len(out.Operations) == 0 {
		out.Operations = [][]value.AccessCondition{operations}
	}
	return out
}

func source(s *security.Source, namespace string) []value.AccessCondition {
	return conditions(
		value.AccessCondition{Attribute: value.SourcePrincipal, Values: s.GetPrincipals(),
			NotValues: s.GetNotPrincipals()},
		value.AccessCondition{Attribute: value.RequestPrincipal, Values: s.GetRequestPrincipals(),
			NotValues: s.GetNotRequestPrincipals()},
		value.AccessCondition{Attribute: value.SourceServiceAccount, Values: accounts(s.GetServiceAccounts(), namespace),
			NotValues: accounts(s.GetNotServiceAccounts(), namespace)},
		value.AccessCondition{Attribute: value.SourceTrustDomain, Values: s.GetTrustDomains(),
			NotValues: s.GetNotTrustDomains()},
		value.AccessCondition{Attribute: value.SourceNamespace, Values: s.GetNamespaces(),
			NotValues: s.GetNotNamespaces()},
		value.AccessCondition{Attribute: value.RemoteIP, Values: s.GetRemoteIpBlocks(),
			NotValues: s.GetNotRemoteIpBlocks()},
		value.AccessCondition{Attribute: value.SourceIP, Values: s.GetIpBlocks(), NotValues: s.GetNotIpBlocks()},
	)
}

func operation(o *security.Operation) []value.AccessCondition {
	return conditions(
		value.AccessCondition{Attribute: value.RequestHost, Values: o.GetHosts(), NotValues: o.GetNotHosts()},
		value.AccessCondition{Attribute: value.RequestMethod, Values: o.GetMethods(), NotValues: o.GetNotMethods()},
		value.AccessCondition{Attribute: value.RequestPath, Values: o.GetPaths(), NotValues: o.GetNotPaths()},
		value.AccessCondition{Attribute: value.DestinationPort, Values: o.GetPorts(), NotValues: o.GetNotPorts()},
	)
}

// conditions returns those of all that are not empty.
func conditions(all ...value.AccessCondition) (out []value.AccessCondition) {
	for _, c := range all {
		if len(c.Values)+len(c.NotValues) > 0 {
			c.Values, c.NotValues = list(c.Values), list(c.NotValues)
			out = append(out, c)
		}
	}
	return out
}

// accounts returns service accounts qualified with a namespace: their own, or else the policy's.
func accounts(in []string, namespace string) (out []string) {
	for _, a := range in {
		if !strings.Contains(a, "/") {
			a = namespace + "/" + a
		}
		out = append(out, a)
	}
	return out
}
