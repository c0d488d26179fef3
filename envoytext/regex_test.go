package envoytext

import (
	"strings"
	"testing"
)

// TestProgramSizeIsEnvoys holds sizes against those that upstream Envoy 1.40 named when it refused these expressions.
func TestProgramSizeIsEnvoys(t *testing.T) {
	for expression, want := range map[string]int{
		`(ab){1000}`:                         4004,
		`/.{1000}`:                           2005,
		`/\pL{1000}`:                         7005,
		`(?i)[a-z0-9._-]{900}`:               3604,
		`(?i)(hello|world){12}`:              0,
		`^/v4/advisory/[0-9a-z-]{36}/clone$`: 118,
		`(foo|bar|baz|quux|foobar|foobaz)*(a+b*c?){20}(foo|bar){10}`: 264,
		`(?:(?:a|b|cd)*e|f+g|h{3,7}){15}`:                            304,
		`((a*)*)*([a-z]+\.)*[a-z]{2,63}(/[a-z0-9]*)*`:                151,
		`(\d{1,3}\.){3}\d{1,3}(:\d{1,5})?(/[\w.-]*){0,12}`:           142,
		`\bfoo\b|\Bbar\B|^a|b$|(?m:^x$){20}(abc){30}`:                228,
		`(a|ab|abc|abcd|abcde){40}`:                                  444,
		`(é|ü|ö){50}`:                                                304,
		`\C{200}`:                                                    204,
		`[\p{Greek}a]{150}`:                                          154,
		`(a*?b+?c??){50}`:                                            404,
		`(?:a|(?:b|(?:c|(?:d|e*)*)*)*)*z{100}`:                       127,
		`^[ab]{200}`:                                                 202, `^a[bc]{200}`: 204, `^(abc[de]{100})`: 107,
		`^abc*[de]{100}`: 105, `^abc|d{100}`: 108, `(^abc)[de]{100}`: 107,
		`^^abc[de]{100}`: 104, `^ab+c{100}`: 106, `(?i)^123[de]{100}`: 104, `[de]{100}$`: 104, `^[de]{100}\z`: 102,
		`(?m)^abc[de]{100}`: 108,
	} {
		parsed, err := parse(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if got, steps := programSize(parsed); want != 0 && (got != want || steps > maxSteps) {
			t.Errorf("%s has %d instructions, Envoy says %d", expression, got, want)
		}
	}
}

// TestRegexIsEnvoys: what upstream Envoy 1.40 takes and refuses, where Go's regular expressions differ from RE2's and
// where they do not.
func TestRegexIsEnvoys(t *testing.T) {
	for _, good := range []string{
		`\C`, `\pN+`, `(?i)foo`, `(?<name>foo)`, `(?P<name>foo)`, `(?U)foo*`, `\Qa(b\E`, `a{,5}`, `\p{Greek}`,
		`\p{Any}`, `foo\z`, `a` + "\n" + `b`, `\Q\p{nothing}\E`,
		`/api/(v1|v2)/users/[^/]+/orders/[^/]+`,
		`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`,
	} {
		if err := Regex(good, UpstreamRegexSize); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, `(ab){1001}`, `((((a{10}){10}){10}){10})`, `(?u)foo`, `a**`, `a{2,1}`, `\8`, `*`, `\x{110000}`, `\p{greek}`,
		`\p{ASCII}`, `\p{Lowercase_Letter}`, `\p{L&}`,
		`(a`, `[`, `a{101}`, `[0-9a-z-]{40}`, strings.Repeat("(", 500) + "a" + strings.Repeat(")", 500),
	} {
		if Regex(bad, UpstreamRegexSize) == nil {
			t.Errorf("%.40q is accepted", bad)
		}
	}
	if err := Regex(`[0-9a-z-]{40}`, IstioRegexSize); err != nil {
		t.Errorf("a larger limit: %v", err)
	}
}

// TestComplexRegexIsJudgedSoon: an expression whose program takes the square of its size to make is refused after a
// bounded number of steps; large ones that are made in a usual way are not.
func TestComplexRegexIsJudgedSoon(t *testing.T) {
	optional := "(?:" + strings.Repeat("a?b?", 250) + ")"
	for expression, want := range map[string]int{
		optional + "{1000}": 0, `(?:(?:a*b*)*c*d*){1000}`: 0,
		`[0-9a-f]{1000}`: 2004, `([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){1,10}`: 2553, `(\d?[a-z]*){50}`: 254,
		`(?:\d?){1000}`: 2004, `(?:a?|b?|c?|d?|e?|f?|g?|h?){1000}`: 0,
		`/users/[0-9a-f-]{36}/.*`: 122,
	} {
		parsed, err := parse(expression)
		if err != nil {
			t.Fatal(err)
		}
		n, steps := programSize(parsed)
		if ok := steps <= maxSteps; ok != (want > 0) || ok && n != want {
			t.Errorf("%.40s has %d instructions in %d steps, want %d", expression, n, steps, want)
		}
	}
	if err := Regex(optional+"{1000}", IstioRegexSize); err == nil || !strings.Contains(err.Error(), "too complex") {
		t.Error(err)
	}
	m, n := &Meter{}, 0
	for ; n < 10000 && m.Regex("[0-9a-f]{1000}", IstioRegexSize) == nil; n++ {
	}
	if n < 500 || n == 10000 {
		t.Errorf("%d expressions of one object are measured", n)
	}
	usual := &Meter{}
	for range 5000 {
		if err := usual.Regex("/users/[0-9a-f-]{36}/.*", IstioRegexSize); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTemplate: a rewrite names groups that are there.
func TestTemplate(t *testing.T) {
	for _, c := range []struct {
		template, expression string
		good                 bool
	}{
		{`/x`, `a`, true}, {`/\0`, `a`, true}, {`/\1`, `(a)`, true}, {`/\1\2`, `(a)(?P<n>b)`, true}, {`\\1`, `a`, true},
		{``, `a`, true},
		{`/\1`, `a`, false}, {`/\2`, `(a)`, false}, {`\x`, `a`, false}, {`a\`, `a`, false}, {`\9`, `(?:a)`, false},
	} {
		if err := Template(c.template, c.expression); (err == nil) != c.good {
			t.Errorf("%q of %q: %v", c.template, c.expression, err)
		}
	}
}

// FuzzRegex: no expression is too odd to be judged, and the verdict never depends on the limit alone being absent.
func FuzzRegex(f *testing.F) {
	for _, s := range []string{`(a|b)*c{3,5}$`, `\Q\E\C\p{Greek}`, `^(?i:x)[^a-f]`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1024 {
			t.Skip()
		}
		if Regex(s, 0) != nil && Regex(s, UpstreamRegexSize) == nil {
			t.Fatalf("%q is accepted only with a limit", s)
		}
		_ = Template(s, s)
	})
}

// An escape of more than a byte is refused, as Envoy's RE2 does; one of a byte is not, nor what only looks like one.
func TestEscapesAreBytes(t *testing.T) {
	for expression, want := range map[string]bool{
		`\x{10FFFF}`: false, `a[\x{100}]`: false, `\400`: false,
		`\x{FF}`: true, `\x{00ff}`: true, `\x41`: true, `\377`: true, `\\x{100}`: true,
	} {
		if _, err := parse(expression); (err == nil) != want {
			t.Errorf("%s: %v, want it taken: %t", expression, err, want)
		}
	}
}
