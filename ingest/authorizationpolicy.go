package ingest

import (
	"strconv"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func authorizationPolicyKind() Kind {
	k := custom(Kind{Name: value.KindAuthorizationPolicy, Plural: "authorizationpolicies",
		Versions: []string{"v1", "v1beta1"}},
		func(o *clientsec.AuthorizationPolicy) Message { return &o.Spec }, checkAuthorizationPolicy)
	k.Loss = "nothing is denied, whatever objects of this kind say"
	k.instead = closedAuthorizationPolicy
	return valued(k, (*joiner).authorizationPolicy)
}

// dryRunAnnotation marks a policy whose result is only recorded, not enforced.
const dryRunAnnotation = "istio.io/dry-run"

// authorizationPolicy makes the value of an AuthorizationPolicy, and reports targets that pilotd does not serve.
func (j *joiner) authorizationPolicy(key value.ObjectKey,
	o *clientsec.AuthorizationPolicy) *value.AuthorizationPolicy {
	out := istio.Authorization(&o.Spec, o.Namespace)
	out.Meta = metaOf(key, o.ObjectMeta)
	out.DryRun, _ = strconv.ParseBool(o.Annotations[dryRunAnnotation])
	j.unservedTargets(key, istio.References(o.Spec.GetTargetRef(), o.Spec.GetTargetRefs()))
	return out
}

// unservedTargets reports those targets of a policy that are not Gateways.
func (j *joiner) unservedTargets(key value.ObjectKey, references []*typev1beta1.PolicyTargetReference) {
	for i, r := range references {
		if !istio.IsGateway(r) {
			j.unresolved.add(key, item("spec.targetRefs", i)+".kind",
				"is not served: the policy has no effect for a "+r.GetKind())
		}
	}
}

// closedAuthorizationPolicy returns the policy that is in force in place of one that was refused and has no earlier
// good version. It denies at least what the refused object may have meant to deny: an ALLOW policy becomes one that
// allows nothing, a DENY or CUSTOM policy one that denies everything.
func closedAuthorizationPolicy(object any) any {
	o, p := typed[clientsec.AuthorizationPolicy](object)
	if p != nil {
		return nil
	}
	if tried, _ := strconv.ParseBool(o.Annotations[dryRunAnnotation]); tried {
		return nil
	}
	closed := o.DeepCopy()
	closed.Spec.ActionDetail, closed.Annotations = nil, nil
	switch closed.Spec.Rules = nil; closed.Spec.Action {
	case security.AuthorizationPolicy_AUDIT:
		return nil
	case security.AuthorizationPolicy_ALLOW:
	default:
		closed.Spec.Action, closed.Spec.Rules = security.AuthorizationPolicy_DENY, []*security.Rule{{}}
	}
	if c := (&check{}); c.targets(&closed.Spec).first != nil {
		closed.Spec.Selector, closed.Spec.TargetRef, closed.Spec.TargetRefs = nil, nil, nil
	}
	return closed
}
