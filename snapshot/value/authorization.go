package value

import (
	"reflect"
	"slices"
)

// KindAuthorizationPolicy is Istio's AuthorizationPolicy.
const KindAuthorizationPolicy Kind = "AuthorizationPolicy.security.istio.io"

// AuthorizationPolicy is an AuthorizationPolicy object: which requests and connections workloads take. Immutable.
type AuthorizationPolicy struct {
	Meta
	PolicyTarget
	Action AuthorizationAction
	// Provider names the server that CustomAction asks.
	Provider string
	// DryRun: what the rules find is counted, and nothing else comes of it.
	DryRun bool
	// Rules are alternatives. One without rules matches nothing.
	Rules []AuthorizationRule
}

// AuthorizationAction is what becomes of what a policy's rules match.
type AuthorizationAction uint8

// The actions. Where any policy allows, nothing else is allowed; what is denied is not allowed by any.
const (
	AllowAction AuthorizationAction = iota
	DenyAction
	AuditAction
	CustomAction // an outside server decides
)

// Kind returns KindAuthorizationPolicy.
func (p *AuthorizationPolicy) Kind() Kind { return KindAuthorizationPolicy }

// Object returns the key of the AuthorizationPolicy object.
func (p *AuthorizationPolicy) Object() ObjectKey { return p.Meta.Object(p.Kind()) }

// Age returns what decides which of several policies comes first.
func (p *AuthorizationPolicy) Age() Meta { return p.Meta }

// Equal reports whether two AuthorizationPolicy objects are the same.
func (p *AuthorizationPolicy) Equal(o *AuthorizationPolicy) bool {
	return p == o || reflect.DeepEqual(p, o)
}

// AuthorizationRule matches what one of its Sources sends to one of its Operations.
type AuthorizationRule struct {
	// Sources and Operations are alternatives, of which each has conditions that must all hold. Neither list is empty;
	// an alternative without conditions always holds.
	Sources, Operations [][]AccessCondition
}

// AccessCondition is about one attribute. It holds where the attribute matches one of Values, or there are none, and
// none of NotValues. A value may begin or end in "*", which stands for anything.
type AccessCondition struct {
	Attribute AccessAttribute
	// Path leads into an attribute: the name of a header, the names of a claim, filter and key of metadata.
	Path              []string
	Values, NotValues []string
}

// AccessAttribute is something that is known of a connection or of a request.
type AccessAttribute uint8

// The attributes of sources, then those of operations.
const (
	SourcePrincipal AccessAttribute = iota
	SourceNamespace
	SourceServiceAccount // "namespace/name"
	SourceTrustDomain
	SourceIP
	RemoteIP
	RequestPrincipal
	RequestAudience
	RequestPresenter
	RequestClaim
	RequestHeader

	RequestHost
	RequestMethod
	RequestPath // a value with {*} or {**} is a template
	DestinationIP
	DestinationPort
	ConnectionSNI
	FilterMetadata // a value in brackets matches a member of a list
)

// HTTPOnly reports whether the attribute is one of HTTP requests, which connections of bytes have not.
func (a AccessAttribute) HTTPOnly() bool {
	return a >= RequestPrincipal && a <= RequestPath
}

// PolicyTarget says for which workloads a policy of requests is.
type PolicyTarget struct {
	// Labels are those of the workloads; empty for all of its namespace, and all of the mesh in the root namespace.
	Labels Labels
	// Gateways are names of Gateways of the Gateway API in its namespace; it is for nobody but the proxies of these, if
	// there are any.
	Gateways []string
	// Elsewhere: it is for something that is no workload, so that it is for none.
	Elsewhere bool
}

// GatewayNameLabel is the label by which the proxies of a Gateway of the Gateway API name it.
const GatewayNameLabel = "gateway.networking.k8s.io/gateway-name"

// Selects reports whether a policy is for a workload with such labels, of the policy's own namespace or of another one.
func (t *PolicyTarget) Selects(labels Labels, own bool) bool {
	if len(t.Gateways) == 0 {
		return !t.Elsewhere && labels.Contains(t.Labels)
	}
	return own && slices.Contains(t.Gateways, labels[GatewayNameLabel])
}

// Selector returns labels that all workloads have for which the policy is.
func (t *PolicyTarget) Selector() Labels {
	if len(t.Gateways) == 1 {
		return Labels{GatewayNameLabel: t.Gateways[0]}
	}
	return t.Labels
}
