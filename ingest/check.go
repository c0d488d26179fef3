package ingest

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/snapshot/value"
)

// check records the first problem of an object. Rules are called in the order of the object's fields, each with the
// path of the field that it checks.
type check struct {
	first *problem
	// regexSize is the largest allowed program of a regular expression. meter measures programs.
	regexSize int
	meter     envoytext.Meter
}

// that records a problem with field unless ok. Long reasons are cut, because they quote the object.
func (c *check) that(ok bool, field, expected string, args ...any) {
	if !ok && c.first == nil {
		const longestField, longestReason = 256, 512
		c.first = &problem{short(field, longestField), short(fmt.Sprintf(expected, args...), longestReason)}
	}
}

// short returns s as one line, cut to limit.
func short(s string, limit int) string {
	if strings.ContainsAny(s, "\n\r") {
		s = strings.Join(strings.Fields(s), " ")
	}
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

func item(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// member returns the path of a map entry. It quotes a key that contains characters with a meaning in paths.
func member(field, key string) string {
	const longest = 64
	if key != "" && len(key) <= longest &&
		!strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return field + "." + key
	}
	return field + "[" + strconv.Quote(short(key, longest)) + "]"
}

func (c *check) port(field string, n uint32) {
	c.that(n >= 1 && n <= 65535, field, "expected a port from 1 to 65535, got %d", n)
}

// optionalPort checks a port number; 0 means none.
func (c *check) optionalPort(field string, n uint32) {
	c.that(n <= 65535, field, "expected a port up to 65535, got %d", n)
}

// duration checks that d is a whole number of milliseconds and at least one. Zero is allowed only if zero is set.
func (c *check) duration(field string, d *durationpb.Duration, zero bool) {
	if d == nil || c.first != nil {
		return
	}
	if err := d.CheckValid(); err != nil {
		c.that(false, field, "expected a duration: %v", err)
		return
	}
	const longest = math.MaxInt64/int64(time.Second) - 1 // Envoy counts durations in nanoseconds, in 64 bits.
	c.that(d.GetSeconds() <= longest, field, "expected a duration of at most %ds, got %ds", longest, d.GetSeconds())
	v := d.AsDuration()
	if v == 0 && zero {
		return
	}
	c.that(v >= time.Millisecond, field, "expected a duration of at least 1ms, got %v", v)
	c.that(v%time.Millisecond == 0, field, "expected a duration of whole milliseconds, got %v", v)
}

// positive checks that d is a whole number of milliseconds and at least one.
func (c *check) positive(field string, d *durationpb.Duration) { c.duration(field, d, false) }

// regex checks an expression by the rules of both istiod and Envoy.
func (c *check) regex(field, expression string) {
	if c.first != nil {
		return
	}
	const longest = 1024
	c.that(len(expression) <= longest, field, "expected an RE2 expression of at most %d characters, got %d", longest,
		len(expression))
	if c.first == nil {
		err := c.meter.Regex(expression, c.regexSize)
		c.that(err == nil, field, "expected an RE2 expression that Envoy takes: %v", err)
	}
}

// line checks a text that Envoy writes into a header: no line breaks or other control characters, and not too long.
func (c *check) line(field, s string) {
	const longest = 16 << 10
	c.that(len(s) <= longest, field, "expected at most %d bytes, got %d", longest, len(s))
	c.that(!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }), field,
		"expected a text without control characters, got %q", s)
}

// match checks a string match that becomes a header match. Envoy accepts an empty one only if it is exact.
func (c *check) match(field string, m *networking.StringMatch) {
	switch t := m.GetMatchType().(type) {
	case *networking.StringMatch_Regex:
		c.regex(field+".regex", t.Regex)
	case *networking.StringMatch_Prefix:
		c.that(t.Prefix != "", field+".prefix", "expected a prefix, got an empty one")
	}
}

func (c *check) percent(field string, p *networking.Percent) {
	c.that(p.GetValue() >= 0 && p.GetValue() <= 100, field, "expected a percentage from 0 to 100, got %v", p.GetValue())
}

func (c *check) within(field string, n, low, high int64) {
	c.that(n >= low && n <= high, field, "expected a number from %d to %d, got %d", low, high, n)
}

func (c *check) address(field, s string) {
	a, err := netip.ParseAddr(s)
	c.that(err == nil, field, "expected an IP address, got %q", s)
	c.that(a.Zone() == "", field, "expected an IP address without a zone, got %q", s)
}

// subnet checks a CIDR range or a single address.
func (c *check) subnet(field, s string) {
	if !strings.Contains(s, "/") {
		c.address(field, s)
		return
	}
	_, err := netip.ParsePrefix(s) // ParsePrefix refuses IPv6 zones, as it should here.
	c.that(err == nil, field, "expected an address or a CIDR range, got %q", s)
}

// host checks a DNS name, which may start with a wildcard if wildcard is set.
func (c *check) host(field, s string, wildcard bool) {
	name := s
	if wildcard && s == "*" {
		return
	}
	if wildcard && strings.HasPrefix(s, "*") {
		name = "x" + strings.TrimPrefix(s, "*")
	}
	c.that(isDomain(name), field, "expected a host name, got %q", s)
}

// isDomain reports whether s is a DNS name. Its last label may be empty ("istio.io.") but not a number.
func isDomain(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	return !slices.ContainsFunc(parts, func(p string) bool { return !isLabel(p) }) &&
		strings.Trim(parts[len(parts)-1], "0123456789") != ""
}

// isLabel reports whether s is one label of a DNS name, in upper or lower case.
func isLabel(s string) bool {
	lower := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
	return len(validation.IsDNS1123Label(lower)) == 0
}

// hostIn checks "namespace/host", or a host without a namespace if alone is set. The namespace is a name, "*", or one
// of special.
func (c *check) hostIn(field, s string, alone bool, special ...string) {
	ns, host, ok := strings.Cut(s, "/")
	if !ok {
		c.that(alone, field, "expected namespace/host, got %q", s)
		c.host(field, s, true)
		return
	}
	c.that(ns == "*" || isLabel(ns) || slices.Contains(special, ns), field,
		"expected a namespace in front of the slash, got %q", ns)
	c.host(field, host, true)
}

// exportTo checks the list of namespaces that an object is exported to. Only ServiceEntries may be exported to none
// ("~").
func (c *check) exportTo(list []string, namespace string, nobody bool) {
	own := func(e string) string {
		if e == "." {
			return namespace
		}
		return e
	}
	listed := set[string]{}
	for i, e := range list {
		at := item("spec.exportTo", i)
		c.that(e == "*" || e == "." || e == "~" || isLabel(e), at, `expected a namespace, "*", "." or "~", got %q`, e)
		c.that(e != "~" || nobody, at, `expected a namespace, "*" or ".", "~" is for ServiceEntries only`)
		c.that(e != "~" && e != "*" || len(list) == 1, at, "expected %q to stand alone", e)
		c.that(firstTime(listed, own(e)), at, "%q is listed twice", own(e))
	}
}

// labels checks the labels of a selector.
func (c *check) labels(field string, l map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(l)) {
		c.that(k != "", field, "expected a label, got an empty key")
		c.that(!strings.Contains(l[k], "*"), member(field, k),
			"expected a label's value, wildcards select nothing here: %q", l[k])
	}
}

// header checks the name of a header.
func (c *check) header(field, name string) {
	c.that(name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}), field, "expected a header's name, got %q", name)
}

func (c *check) protocol(field, name string) {
	c.that(parseProtocol(name) != value.Auto, field,
		"expected one of HTTP, HTTP2, HTTPS, GRPC, GRPC-WEB, MONGO, REDIS, MYSQL, TCP, TLS, UDP, got %q", name)
}

// socket checks the path of "unix://path".
func (c *check) socket(field, path string) {
	c.that(strings.HasPrefix(path, "@") || strings.HasPrefix(path, "/") && !strings.HasSuffix(path, "/"), field,
		"expected unix:// and an absolute path or an abstract name, got %q", path)
	const longest = 107 // The kernel's limit is 108, with a zero byte at the end.
	c.that(len(path) <= longest && !strings.Contains(path, "\x00"), field,
		"expected a path of at most %d bytes, got %d", longest, len(path))
}
