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

// check keeps the first problem of an object: rules are called in the order of its fields, each with the path of the
// field it looks at.
type check struct {
	first *problem
	// regexSize is the largest program of a regular expression, which meter measures.
	regexSize int
	meter     envoytext.Meter
}

// that refuses unless ok. Reasons quote what objects say, so they are cut where they are long.
func (c *check) that(ok bool, field, expected string, args ...any) {
	if !ok && c.first == nil {
		const longestField, longestReason = 256, 512
		c.first = &problem{short(field, longestField), short(fmt.Sprintf(expected, args...), longestReason)}
	}
}

// short returns s in one line, cut where it is longer than limit.
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

// member returns the path of a map's entry. A key that would not stand alone in a path is quoted.
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

// optionalPort lets 0 stand for none.
func (c *check) optionalPort(field string, n uint32) {
	c.that(n <= 65535, field, "expected a port up to 65535, got %d", n)
}

// duration takes whole milliseconds, at least one; zero only where it means something.
func (c *check) duration(field string, d *durationpb.Duration, zero bool) {
	if d == nil || c.first != nil {
		return
	}
	if err := d.CheckValid(); err != nil {
		c.that(false, field, "expected a duration: %v", err)
		return
	}
	const longest = math.MaxInt64/int64(time.Second) - 1 // What Envoy can count in nanoseconds.
	c.that(d.GetSeconds() <= longest, field, "expected a duration of at most %ds, got %ds", longest, d.GetSeconds())
	v := d.AsDuration()
	if v == 0 && zero {
		return
	}
	c.that(v >= time.Millisecond, field, "expected a duration of at least 1ms, got %v", v)
	c.that(v%time.Millisecond == 0, field, "expected a duration of whole milliseconds, got %v", v)
}

// positive takes whole milliseconds, at least one.
func (c *check) positive(field string, d *durationpb.Duration) { c.duration(field, d, false) }

// regex takes what istiod and Envoy take.
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

// line takes a text that Envoy puts into a header: without line breaks and other control characters, and not too long.
func (c *check) line(field, s string) {
	const longest = 16 << 10
	c.that(len(s) <= longest, field, "expected at most %d bytes, got %d", longest, len(s))
	c.that(!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }), field,
		"expected a text without control characters, got %q", s)
}

// match checks a string match that becomes a header match, which cannot be empty unless exact.
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

// subnet takes a CIDR range or a single address.
func (c *check) subnet(field, s string) {
	if !strings.Contains(s, "/") {
		c.address(field, s)
		return
	}
	_, err := netip.ParsePrefix(s) // It refuses zones.
	c.that(err == nil, field, "expected an address or a CIDR range, got %q", s)
}

// host takes a name, with a wildcard in front if that is allowed.
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

// isDomain reports whether s is a DNS name. Its last part may be empty ("istio.io.") but not a number.
func isDomain(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	return !slices.ContainsFunc(parts, func(p string) bool { return !isLabel(p) }) &&
		strings.Trim(parts[len(parts)-1], "0123456789") != ""
}

// isLabel reports whether s is one part of a DNS name; upper case letters are as good as lower case ones.
func isLabel(s string) bool {
	lower := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
	return len(validation.IsDNS1123Label(lower)) == 0
}

// hostIn takes "namespace/host", or a host alone if that is allowed. A namespace is a name, "*", or one of special.
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

// exportTo checks to whom an object of a namespace is visible. Only ServiceEntries may be visible to nobody.
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

// labels checks a selector.
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
	const longest = 107 // The system's 108 with the zero at the end.
	c.that(len(path) <= longest && !strings.Contains(path, "\x00"), field,
		"expected a path of at most %d bytes, got %d", longest, len(path))
}
