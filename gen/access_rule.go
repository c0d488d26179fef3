package gen

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	templatepb "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/gen/check"
	"github.com/pilotd/pilotd/snapshot/value"
)

// accessMaker makes the rules of one policy.
type accessMaker struct {
	key AccessKey
	// bytes tells that the rules are for a chain of bytes, where nothing is known of requests.
	bytes bool
	// narrow tells that a condition which cannot be expressed must make a rule match less, never more. lost tells that
	// because of one the present rule matches nothing.
	narrow, lost bool
	// regexes are the regular expressions that the proxy would refuse.
	regexes []check.Fault
	meter   envoytext.Meter
}

func (m *accessMaker) rule(r value.AuthorizationRule) *rbacpb.Policy {
	out := &rbacpb.Policy{}
	for _, conditions := range r.Operations {
		and := m.permissions(conditions)
		if len(and) == 0 {
			and = append(and, anything())
		}
		out.Permissions = append(out.Permissions, &rbacpb.Permission{Rule: &rbacpb.Permission_AndRules{
			AndRules: &rbacpb.Permission_Set{Rules: and}}})
	}
	for _, conditions := range r.Sources {
		and := m.principals(conditions)
		if len(and) == 0 {
			and = append(and, anybody())
		}
		out.Principals = append(out.Principals, &rbacpb.Principal{Identifier: &rbacpb.Principal_AndIds{
			AndIds: &rbacpb.Principal_Set{Ids: and}}})
	}
	return out
}

// skips reports whether a condition cannot be asked for here, and notes what that means for the rule.
func (m *accessMaker) skips(c value.AccessCondition) bool {
	if !(m.bytes && c.Attribute.HTTPOnly()) && !(m.key.GRPC && foreignToGRPC(c)) {
		return false
	}
	m.lost = m.lost || m.narrow
	return true
}

// eachSide returns what matches the values of each condition, and what matches none of those that it excludes.
// Conditions that cannot be asked for here are left out.
func eachSide[T any](m *accessMaker, conditions []value.AccessCondition,
	match func(value.AccessCondition, []string) *T, not func(*T) *T) (out []*T) {
	for _, c := range conditions {
		if m.skips(c) {
			continue
		}
		if p := match(c, c.Values); p != nil {
			out = append(out, p)
		}
		if p := match(c, c.NotValues); p != nil {
			out = append(out, not(p))
		}
	}
	return out
}

func (m *accessMaker) permissions(conditions []value.AccessCondition) []*rbacpb.Permission {
	return eachSide(m, conditions, m.permission, notPermission)
}

// permission matches any of some values of an attribute of operations; nil if there are none.
func (m *accessMaker) permission(c value.AccessCondition, values []string) *rbacpb.Permission {
	if len(values) == 0 {
		return nil
	}
	if c.Attribute == value.FilterMetadata {
		var any []*matcherpb.ValueMatcher
		for _, v := range values {
			if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
				any = append(any, inList(stringValue(affix(strings.Trim(v, "[]")))))
			} else {
				any = append(any, stringValue(affix(v)))
			}
		}
		m := metadataMatch(orValue(any), c.Path[0], c.Path[1])
		//lint:ignore SA1019 istiod sends this one, and proxies of all versions know it
		return &rbacpb.Permission{Rule: &rbacpb.Permission_Metadata{Metadata: m}}
	}
	var or []*rbacpb.Permission
	for _, v := range values {
		or = append(or, operationMatch(c, v))
	}
	return &rbacpb.Permission{Rule: &rbacpb.Permission_OrRules{OrRules: &rbacpb.Permission_Set{Rules: or}}}
}

// operationMatch matches one value of an attribute of operations.
func operationMatch(c value.AccessCondition, v string) *rbacpb.Permission {
	switch c.Attribute {
	case value.RequestHost:
		m := headerMatch(":authority", v)
		if s := m.GetStringMatch(); s != nil {
			s.IgnoreCase = true
		}
		return &rbacpb.Permission{Rule: &rbacpb.Permission_Header{Header: m}}
	case value.RequestMethod:
		return &rbacpb.Permission{Rule: &rbacpb.Permission_Header{Header: headerMatch(":method", v)}}
	case value.RequestPath:
		if value.IsPathTemplate(v) {
			return &rbacpb.Permission{Rule: &rbacpb.Permission_UriTemplate{UriTemplate: &corev3.TypedExtensionConfig{
				Name:        "uri-template",
				TypedConfig: anyOf(&templatepb.UriTemplateMatchConfig{PathTemplate: value.PathTemplate(v)})}}}
		}
		return &rbacpb.Permission{Rule: &rbacpb.Permission_UrlPath{UrlPath: &matcherpb.PathMatcher{
			Rule: &matcherpb.PathMatcher_Path{Path: affix(v)}}}}
	case value.DestinationIP:
		return &rbacpb.Permission{Rule: &rbacpb.Permission_DestinationIp{DestinationIp: addressRange(v)}}
	case value.DestinationPort:
		port, _ := strconv.ParseUint(v, 10, 16)
		return &rbacpb.Permission{Rule: &rbacpb.Permission_DestinationPort{DestinationPort: uint32(port)}}
	}
	return &rbacpb.Permission{Rule: &rbacpb.Permission_RequestedServerName{RequestedServerName: affix(v)}}
}

func (m *accessMaker) principals(conditions []value.AccessCondition) []*rbacpb.Principal {
	return eachSide(m, conditions, m.principal, notPrincipal)
}

// principal matches any of some values of an attribute of sources; nil if there are none.
func (m *accessMaker) principal(c value.AccessCondition, values []string) *rbacpb.Principal {
	if len(values) == 0 {
		return nil
	}
	switch c.Attribute {
	case value.RequestPrincipal:
		return requestPrincipal(values)
	case value.RequestAudience:
		return claim([]string{"aud"}, values)
	case value.RequestPresenter:
		return claim([]string{"azp"}, values)
	case value.RequestClaim:
		return claim(c.Path, values)
	case value.SourcePrincipal:
		values = expandPrincipals(values, m.trustDomains())
	case value.SourceTrustDomain:
		values = expandDomains(values, m.trustDomains())
	}
	var or []*rbacpb.Principal
	for _, v := range values {
		or = append(or, m.sourceMatch(c, v))
	}
	return orPrincipals(or)
}

func (m *accessMaker) trustDomains() []string {
	if m.key.Settings == nil {
		return nil
	}
	return m.key.Settings.TrustDomains
}

// sourceMatch matches one value of an attribute of sources.
func (m *accessMaker) sourceMatch(c value.AccessCondition, v string) *rbacpb.Principal {
	switch c.Attribute {
	case value.SourceIP:
		return &rbacpb.Principal{Identifier: &rbacpb.Principal_DirectRemoteIp{DirectRemoteIp: addressRange(v)}}
	case value.RemoteIP:
		return &rbacpb.Principal{Identifier: &rbacpb.Principal_RemoteIp{RemoteIp: addressRange(v)}}
	case value.RequestHeader:
		return &rbacpb.Principal{Identifier: &rbacpb.Principal_Header{Header: headerMatch(c.Path[0], v)}}
	}
	return authenticated(m.identity(c.Attribute, v))
}

// identity matches the SPIFFE name of a client's certificate.
func (m *accessMaker) identity(a value.AccessAttribute, v string) *matcherpb.StringMatcher {
	if a == value.SourcePrincipal && v != "*" && !strings.HasPrefix(v, "*") {
		return affix(value.SPIFFE + v)
	}
	if a == value.SourceTrustDomain && !strings.Contains(v, "*") {
		return prefixMatch(value.SPIFFE + v + "/")
	}
	expression := value.IdentityRegex(a, v)
	if m.key.RegexSize > 0 {
		size, err := m.meter.Size(expression)
		if (err != nil || size > m.key.RegexSize) && a == value.SourceNamespace && !strings.Contains(v, "*") {
			return &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Contains{Contains: "/ns/" + v + "/"}}
		}
		if err != nil || size > m.key.RegexSize {
			m.regexes = append(m.regexes, check.Fault{Reason: "the proxy takes no regular expression as large as " +
				strconv.Quote(expression)})
		}
	}
	return regexMatch(expression)
}

// expandPrincipals returns principals in all trust domains of the mesh, of those that name one of them or stand for it.
func expandPrincipals(principals, domains []string) (out []string) {
	const parts = 5 // domain/ns/namespace/sa/name
	for _, p := range principals {
		domain, rest, _ := strings.Cut(p, "/")
		if strings.Count(p, "/") != parts-1 || domain == "*" || domain != "cluster.local" && !anyMatches(domains, domain) {
			out = append(out, p)
			continue
		}
		var names []string
		for _, d := range domains {
			name := d + "/" + rest
			if matchesAffix(d, domain) && strings.HasPrefix(domain, "*") {
				name = p
			}
			names = appendOnce(names, name)
		}
		out = append(out, names...)
	}
	return out
}

func appendOnce(list []string, s string) []string {
	for _, o := range list {
		if o == s {
			return list
		}
	}
	return append(list, s)
}

func anyMatches(list []string, pattern string) bool {
	for _, s := range list {
		if matchesAffix(s, pattern) {
			return true
		}
	}
	return false
}

// matchesAffix reports whether s is as pattern says, which may begin or end in "*".
func matchesAffix(s, pattern string) bool {
	if rest, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(s, rest)
	}
	if rest, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, rest)
	}
	return s == pattern
}

// expandDomains returns trust domains with all of the mesh where one of them is meant.
func expandDomains(values, domains []string) (out []string) {
	for _, v := range values {
		if !anyMatches(domains, v) || strings.Contains(v, "*") {
			out = appendOnce(out, v)
			continue
		}
		for _, d := range domains {
			out = appendOnce(out, d)
		}
	}
	return out
}

// requestPrincipal matches who a token speaks for: "issuer/subject".
func requestPrincipal(values []string) *rbacpb.Principal {
	var or []*rbacpb.Principal
	for _, v := range values {
		issuer, subject := requestPrincipalMatch(v)
		or = append(or, &rbacpb.Principal{Identifier: &rbacpb.Principal_AndIds{AndIds: &rbacpb.Principal_Set{
			Ids: []*rbacpb.Principal{
				tokenPrincipal(stringValue(issuer), "iss"), tokenPrincipal(stringValue(subject), "sub"),
			}}}})
	}
	if len(or) == 1 {
		return or[0]
	}
	return orPrincipals(or)
}

// requestPrincipalMatch returns the issuer and the subject that a principal asks for. The last slash parts them:
// issuers are URLs. What is left open may be anything.
func requestPrincipalMatch(v string) (issuer, subject *matcherpb.StringMatcher) {
	i := strings.LastIndex(v, "/")
	switch {
	case v == "*":
		return affix("*"), affix("*")
	case i < 0 && strings.HasPrefix(v, "*"):
		return affix("*"), affix(v)
	case i < 0 && strings.HasSuffix(v, "*"):
		return affix(v), affix("*")
	case i < 0:
		return exactMatch(v), exactMatch("")
	case strings.HasPrefix(v, "*"):
		return affix(v[:i]), exactMatch(v[i+1:])
	case strings.HasSuffix(v, "/*"):
		return exactMatch(v[:i]), affix("*")
	case strings.HasSuffix(v, "*"):
		return exactMatch(v[:i]), prefixMatch(v[i+1 : len(v)-1])
	}
	return exactMatch(v[:i]), exactMatch(v[i+1:])
}

// claim matches a claim of a token that is one of values, or a list that has one of them.
func claim(path, values []string) *rbacpb.Principal {
	var any []*matcherpb.ValueMatcher
	for _, v := range values {
		any = append(any, stringValue(affix(v)))
	}
	return tokenPrincipal(textOrList(orValue(any)), path...)
}

// tokenPrincipal matches a claim of the token that the request was authenticated by.
func tokenPrincipal(m *matcherpb.ValueMatcher, path ...string) *rbacpb.Principal {
	match := metadataMatch(m, tokenFilter, append([]string{tokenPayload}, path...)...)
	//lint:ignore SA1019 istiod sends this one, and proxies of all versions know it
	return &rbacpb.Principal{Identifier: &rbacpb.Principal_Metadata{Metadata: match}}
}

// Where the filter for tokens leaves what it finds.
const (
	tokenFilter  = "envoy.filters.http.jwt_authn"
	tokenPayload = "payload"
)
