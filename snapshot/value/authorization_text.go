package value

import (
	"regexp"
	"strings"
)

// SPIFFE begins the names in certificates of workloads.
const SPIFFE = "spiffe://"

// IdentityRegex returns the regular expression that matches the SPIFFE names which a value of an attribute of a
// client's identity means. A "*" stands for anything, of namespaces wherever it stands.
func IdentityRegex(a AccessAttribute, v string) string {
	switch a {
	case SourceNamespace:
		return ".*/ns/" + strings.ReplaceAll(regexp.QuoteMeta(v), `\*`, ".*") + "/.*"
	case SourceServiceAccount:
		namespace, name, _ := strings.Cut(v, "/")
		return SPIFFE + ".+/ns/" + regexp.QuoteMeta(namespace) + "/(.+/|)sa/" + regexp.QuoteMeta(name) + "(/.+)?"
	case SourceTrustDomain:
		if v == "*" {
			return SPIFFE + "[^/]+/.*"
		}
		return SPIFFE + strings.ReplaceAll(regexp.QuoteMeta(v), `\*`, "[^/]*") + "/.*"
	}
	if v == "*" {
		return ".+"
	}
	return SPIFFE + ".*" + regexp.QuoteMeta(strings.TrimPrefix(v, "*"))
}

// RoutingClaim returns the path to the claim of a token that the name of a header in a route's match stands for:
// "@request.auth.claims.a.b" or "@request.auth.claims[a][b]". It is nil for other names.
func RoutingClaim(name string) []string {
	const prefix = "@request.auth.claims"
	if len(name) <= len(prefix)+1 || !strings.EqualFold(name[:len(prefix)], prefix) {
		return nil
	}
	rest := name[len(prefix):]
	if inner, ok := strings.CutPrefix(rest, "."); ok {
		return strings.Split(inner, ".")
	}
	inner, ok := strings.CutPrefix(rest, "[")
	if inner, closed := strings.CutSuffix(inner, "]"); ok && closed {
		return strings.Split(inner, "][")
	}
	return nil
}

// IsPathTemplate reports whether a value of RequestPath is a template.
func IsPathTemplate(v string) bool { return strings.Contains(v, "{*}") || strings.Contains(v, "{**}") }

// PathTemplate returns a template as Envoy writes it.
func PathTemplate(v string) string {
	return strings.NewReplacer("{*}", "*", "{**}", "**").Replace(v)
}
