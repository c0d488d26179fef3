package ingest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func checkAuthorizationPolicy(o *clientsec.AuthorizationPolicy) *problem {
	c, spec := &check{}, &o.Spec
	c.targets(spec)
	if text, ok := o.Annotations[dryRunAnnotation]; ok {
		tried := spec.GetAction() == security.AuthorizationPolicy_ALLOW ||
			spec.GetAction() == security.AuthorizationPolicy_DENY
		c.that(tried, member("metadata.annotations", dryRunAnnotation),
			"expected none: only policies that allow or deny can be tried without being enforced")
		_, err := strconv.ParseBool(text)
		c.that(err == nil, member("metadata.annotations", dryRunAnnotation), "expected true or false, got %q", text)
	}
	_, known := security.AuthorizationPolicy_Action_name[int32(spec.GetAction())]
	c.that(known, "spec.action", "expected ALLOW, DENY, AUDIT or CUSTOM, got %d", spec.GetAction())
	outside := spec.GetAction() == security.AuthorizationPolicy_CUSTOM
	c.that(!outside || spec.GetProvider().GetName() != "", "spec.provider.name",
		"expected the name of an extension provider, which action CUSTOM asks")
	c.that(outside || spec.GetProvider() == nil, "spec.provider", "expected none, it is for action CUSTOM only")
	idle := spec.GetAction() == security.AuthorizationPolicy_DENY || outside
	c.that(!idle || len(spec.GetRules()) > 0, "spec.rules", "expected at least one: without any, nothing is matched")
	c.ruleParts(spec.GetRules())
	for i, r := range spec.GetRules() {
		at := item("spec.rules", i)
		c.authorizationRule(at, r)
		if outside {
			c.knownWhenAsked(at, r)
		}
	}
	return c.first
}

// refuseDryRun refuses, on objects of other kinds, the annotation that keeps a policy from being enforced: whoever sets
// it there would think that the object is not in force.
func refuseDryRun(kind value.Kind, annotations map[string]string) *problem {
	if _, ok := annotations[dryRunAnnotation]; ok && kind != value.KindAuthorizationPolicy {
		return &problem{member("metadata.annotations", dryRunAnnotation),
			"expected none: only AuthorizationPolicies can be tried without being enforced"}
	}
	return nil
}

// knownWhenAsked refuses, in a CUSTOM policy, attributes of a request's token: Envoy asks the provider before it reads
// tokens, so a rule that names them would never match.
func (c *check) knownWhenAsked(at string, r *security.Rule) {
	const want = "expected nothing about tokens, they are read only after the provider is asked"
	for i, f := range r.GetFrom() {
		s := item(at+".from", i) + ".source"
		c.that(len(f.GetSource().GetRequestPrincipals()) == 0, s+".requestPrincipals", want)
		c.that(len(f.GetSource().GetNotRequestPrincipals()) == 0, s+".notRequestPrincipals", want)
	}
	for i, w := range r.GetWhen() {
		c.that(!strings.HasPrefix(w.GetKey(), "request.auth."), item(at+".when", i)+".key", want)
	}
}

// targeted is a policy that selects the workloads it applies to.
type targeted interface {
	GetSelector() *typev1beta1.WorkloadSelector
	GetTargetRef() *typev1beta1.PolicyTargetReference
	GetTargetRefs() []*typev1beta1.PolicyTargetReference
}

// targets checks the fields that select a policy's workloads.
func (c *check) targets(policy targeted) *check {
	c.policySelector("spec.selector.matchLabels", policy.GetSelector().GetMatchLabels())
	ways := 0
	for _, is := range []bool{policy.GetSelector() != nil, policy.GetTargetRef() != nil, len(policy.GetTargetRefs()) > 0} {
		if is {
			ways++
		}
	}
	c.that(ways <= 1, "spec.targetRefs", "expected one of selector, targetRef and targetRefs")
	for i, r := range istio.References(policy.GetTargetRef(), policy.GetTargetRefs()) {
		at := item("spec.targetRefs", i)
		c.that(r.GetName() != "", at+".name", "expected a name")
		c.that(slices.Contains(targetKinds(), r.GetGroup()+"/"+r.GetKind()), at+".kind",
			"expected what policies may be for (group/kind): %s; got %q", strings.Join(targetKinds(), ", "),
			r.GetGroup()+"/"+r.GetKind())
		c.that(r.GetNamespace() == "", at+".namespace", "expected none, targets are in the policy's own namespace")
	}
	return c
}

// targetKinds returns the kinds that a policy may name as targets, each as "group/kind".
func targetKinds() []string {
	return []string{"gateway.networking.k8s.io/Gateway", "gateway.networking.k8s.io/GatewayClass",
		"networking.istio.io/ServiceEntry", "/Service", "core/Service"}
}

func (c *check) authorizationRule(at string, r *security.Rule) {
	c.that(r != nil, at, "expected a rule")
	c.that(r.GetFrom() == nil || len(r.GetFrom()) > 0, at+".from", "expected at least one source")
	c.that(r.GetTo() == nil || len(r.GetTo()) > 0, at+".to", "expected at least one operation")
	for i, f := range r.GetFrom() {
		c.accessSource(item(at+".from", i)+".source", f.GetSource())
	}
	for i, t := range r.GetTo() {
		c.accessOperation(item(at+".to", i)+".operation", t.GetOperation())
	}
	for i, w := range r.GetWhen() {
		c.accessCondition(item(at+".when", i), w)
	}
}

// listed is a list of values of one attribute, and the name of its field.
type listed struct {
	name      string
	attribute value.AccessAttribute
	values    []string
}

func (c *check) accessSource(at string, s *security.Source) {
	c.lists(at,
		listed{"principals", value.SourcePrincipal, s.GetPrincipals()},
		listed{"notPrincipals", value.SourcePrincipal, s.GetNotPrincipals()},
		listed{"requestPrincipals", value.RequestPrincipal, s.GetRequestPrincipals()},
		listed{"notRequestPrincipals", value.RequestPrincipal, s.GetNotRequestPrincipals()},
		listed{"serviceAccounts", value.SourceServiceAccount, s.GetServiceAccounts()},
		listed{"notServiceAccounts", value.SourceServiceAccount, s.GetNotServiceAccounts()},
		listed{"trustDomains", value.SourceTrustDomain, s.GetTrustDomains()},
		listed{"notTrustDomains", value.SourceTrustDomain, s.GetNotTrustDomains()},
		listed{"namespaces", value.SourceNamespace, s.GetNamespaces()},
		listed{"notNamespaces", value.SourceNamespace, s.GetNotNamespaces()},
		listed{"ipBlocks", value.SourceIP, s.GetIpBlocks()},
		listed{"notIpBlocks", value.SourceIP, s.GetNotIpBlocks()},
		listed{"remoteIpBlocks", value.RemoteIP, s.GetRemoteIpBlocks()},
		listed{"notRemoteIpBlocks", value.RemoteIP, s.GetNotRemoteIpBlocks()})
	c.that(len(s.GetServiceAccounts())+len(s.GetNotServiceAccounts()) == 0 ||
		len(s.GetPrincipals())+len(s.GetNotPrincipals())+len(s.GetNamespaces())+len(s.GetNotNamespaces()) == 0,
		at+".serviceAccounts", "expected neither principals nor namespaces beside it")
}

func (c *check) accessOperation(at string, o *security.Operation) {
	c.lists(at,
		listed{"hosts", value.RequestHost, o.GetHosts()},
		listed{"notHosts", value.RequestHost, o.GetNotHosts()},
		listed{"methods", value.RequestMethod, o.GetMethods()},
		listed{"notMethods", value.RequestMethod, o.GetNotMethods()},
		listed{"paths", value.RequestPath, o.GetPaths()},
		listed{"notPaths", value.RequestPath, o.GetNotPaths()},
		listed{"ports", value.DestinationPort, o.GetPorts()},
		listed{"notPorts", value.DestinationPort, o.GetNotPorts()})
}

func (c *check) accessCondition(at string, w *security.Condition) {
	what, _, ok := istio.Condition(w.GetKey())
	c.that(ok, at+".key", "expected an attribute that conditions are about, got %q", w.GetKey())
	c.that(len(w.GetValues())+len(w.GetNotValues()) > 0, at+".values", "expected values or notValues")
	if ok {
		if what.Attribute == value.RequestHeader {
			c.anyHeader(at+".key", what.Path[0])
		}
		c.accessValues(at+".values", what.Attribute, w.GetValues())
		c.accessValues(at+".notValues", what.Attribute, w.GetNotValues())
	}
}

// anyHeader checks the name of a header, and accepts pseudo headers such as ":method".
func (c *check) anyHeader(field, name string) {
	pseudo := slices.Contains([]string{":authority", ":method", ":path", ":scheme"}, name)
	c.that(name != "" && (pseudo || strings.Trim(name, headerCharacters) == ""), field,
		"expected a header's name, got %q", name)
}

const headerCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// lists checks the lists of one source or operation, at least one of which must not be empty.
func (c *check) lists(at string, all ...listed) {
	c.that(slices.ContainsFunc(all, func(l listed) bool { return len(l.values) > 0 }), at,
		"expected at least one field, for without any everything is meant")
	for _, l := range all {
		c.accessValues(at+"."+l.name, l.attribute, l.values)
	}
}

// longestIdentity bounds a value that becomes part of a regular expression. Every proxy whose program size limit is
// that of Istio's bootstrap accepts the expressions made from values up to this length.
const longestIdentity = 1024

func (c *check) accessValues(at string, a value.AccessAttribute, values []string) {
	for i, v := range values {
		field := item(at, i)
		c.that(v != "", field, "expected a value, got an empty one")
		c.line(field, v)
		switch a {
		case value.SourceIP, value.RemoteIP, value.DestinationIP:
			c.subnet(field, v)
		case value.DestinationPort:
			_, err := strconv.ParseUint(v, 10, 16)
			c.that(err == nil, field, "expected a port up to 65535, got %q", v)
		case value.RequestPath:
			if value.IsPathTemplate(v) {
				c.pathTemplate(field, v)
			} else {
				c.that(!strings.ContainsAny(v, "{}"), field, "expected no braces but in {*} and {**}, got %q", v)
			}
		case value.SourceServiceAccount:
			c.that(strings.Count(v, "/") <= 1 && !strings.Contains(v, "*") && !strings.HasPrefix(v, "/") &&
				!strings.HasSuffix(v, "/"), field, "expected name or namespace/name without wildcards, got %q", v)
			c.identity(field, v)
		case value.SourcePrincipal, value.SourceNamespace, value.SourceTrustDomain:
			c.identity(field, v)
		}
	}
}

// identity checks a value that becomes part of a regular expression.
func (c *check) identity(field, v string) {
	c.that(len(v) <= longestIdentity, field, "expected at most %d characters, got %d", longestIdentity, len(v))
}

// pathTemplate checks a path against Envoy's syntax of path templates, where {*} is one segment and {**} the rest of
// the path.
func (c *check) pathTemplate(field, v string) {
	problem := ""
	rest, segments := strings.CutPrefix(v, "/")
	if !segments {
		problem = "a slash in front"
	}
	parts := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	for i, p := range parts {
		switch {
		case p == "{**}":
			if slices.ContainsFunc(parts[i+1:], func(s string) bool { return strings.Contains(s, "{") }) {
				problem = "{**} behind all others"
			}
		case p == "{*}":
		case p == "" || strings.Trim(p, templateCharacters) != "":
			problem = fmt.Sprintf("segments that are {*}, {**} or of letters, digits and -._~%%!$&'()+,;:@, got %q", p)
		}
	}
	c.that(problem == "", field, "expected a template with %s", problem)
}

const templateCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()+,;:@"
