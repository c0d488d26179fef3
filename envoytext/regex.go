package envoytext

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

const (
	// UpstreamRegexSize is the largest RE2 program that Envoy takes where its runtime key
	// re2.max_program_size.error_level is not set.
	UpstreamRegexSize = 100
	// IstioRegexSize is the value of that key in the bootstrap of Istio's proxy.
	IstioRegexSize = 32768
)

// Regex says why Envoy does not take expression as an RE2 expression whose program has at most size instructions; nil
// if it takes it. size 0 sets no limit.
func Regex(expression string, size int) error {
	if size == 0 {
		_, err := parse(expression)
		return err
	}
	return new(Meter).Regex(expression, size)
}

const (
	// maxSteps bounds the work of measuring one expression, in instructions that are looked at. That many take some
	// hundredths of a second. Those of an expression whose parts cannot all be missing are some five times its size.
	maxSteps = 4 << 20
	// maxObjectSteps bounds the work of one Meter to about half a second. 5,000 expressions of everyday size take an
	// 8th of it.
	maxObjectSteps = 8 << 20
)

// Meter measures the regular expressions of one object and bounds the work for all of them together. The zero value is
// ready for use. A Meter belongs to one goroutine.
type Meter struct{ steps int }

// Regex works like the function Regex, with a limit.
func (m *Meter) Regex(expression string, size int) error {
	n, err := m.Size(expression)
	if err == nil && n > size {
		return fmt.Errorf("its program has %d instructions, at most %d are allowed", n, size)
	}
	return err
}

// Size returns the number of instructions of the RE2 program that Envoy makes of expression. The error says why there
// is none, or that it is too much work to tell.
func (m *Meter) Size(expression string) (int, error) {
	if m.steps >= maxObjectSteps {
		return 0, errors.New("it and the expressions before it are too complex together")
	}
	parsed, err := parse(expression)
	if err != nil {
		return 0, err
	}
	n, steps := programSize(parsed)
	if m.steps += steps; steps > maxSteps {
		return 0, errors.New("it is too complex: too large, or too many of its parts that follow each other may be missing")
	}
	return n, nil
}

// Template says why Envoy cannot put template in the place of what expression matched; nil if it can. A backslash in it
// stands before the number of a group of the expression, or before another backslash.
func Template(template, expression string) error {
	parsed, err := parse(expression)
	if err != nil {
		return err
	}
	for i := 0; i < len(template); i++ {
		if template[i] != '\\' {
			continue
		}
		i++
		switch {
		case i == len(template):
			return errors.New(`it ends in a lone \`)
		case template[i] == '\\':
		case template[i] < '0' || template[i] > '9':
			return fmt.Errorf(`\%c stands for nothing: a digit or another \ has to follow`, template[i])
		case int(template[i]-'0') > parsed.MaxCap():
			return fmt.Errorf(`\%c names a group that the expression does not have: it has %d`, template[i],
				parsed.MaxCap())
		}
	}
	return nil
}

// parse reads expression as Envoy does: byte by byte, because Envoy tells RE2 that texts are Latin-1. Go's syntax is
// RE2's but for \C, which only RE2 knows, and for some names of character classes, which only Go knows.
func parse(expression string) (*syntax.Regexp, error) {
	if expression == "" {
		return nil, errors.New("it is empty")
	}
	latin := make([]rune, 0, len(expression))
	for _, b := range []byte(expression) {
		latin = append(latin, rune(b))
	}
	text := anyByte(string(latin))
	if err := classNames(text); err != nil {
		return nil, err
	}
	if err := escapesAreBytes(text); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		return nil, errors.New(strings.TrimPrefix(string(e.Code), "regexp: ") + ": " + quoted(e.Expr))
	}
	return parsed, err
}

// escapes returns the pieces of an expression that begin with a backslash, with literal stretches between \Q and \E as
// one piece.
func escapes(expression string) [][]int {
	return regexp.MustCompile(`(?s)\\Q.*?(?:\\E|$)|\\[pP]\{[^}]*\}|\\.`).FindAllStringIndex(expression, -1)
}

// escapesAreBytes refuses escapes of characters beyond a byte, in hexadecimal or octal: RE2 has none where texts are
// Latin-1.
func escapesAreBytes(expression string) error {
	number := regexp.MustCompile(`^\\(?:x\{0*[1-9A-Fa-f][0-9A-Fa-f]{2,}\}|[4-7][0-7]{2})`)
	for _, at := range escapes(expression) {
		if found := number.FindString(expression[at[0]:]); found != "" {
			return fmt.Errorf("invalid escape sequence: %s is more than a byte", quoted(found))
		}
	}
	return nil
}

// anyByte writes \C, RE2's word for any byte, as Go knows it.
func anyByte(expression string) string {
	if !strings.Contains(expression, `\C`) {
		return expression
	}
	var out strings.Builder
	last := 0
	for _, at := range escapes(expression) {
		if expression[at[0]:at[1]] == `\C` {
			out.WriteString(expression[last:at[0]] + `(?s:.)`)
			last = at[1]
		}
	}
	return out.String() + expression[last:]
}

// classNames refuses the names of Unicode classes that Go knows and RE2 does not. RE2 knows scripts and general
// categories by their short names, written exactly so, and Any.
func classNames(expression string) error {
	if !strings.Contains(expression, `\p{`) && !strings.Contains(expression, `\P{`) {
		return nil
	}
	for _, at := range escapes(expression) {
		text := expression[at[0]:at[1]]
		if len(text) < 4 || text[1] != 'p' && text[1] != 'P' {
			continue
		}
		name := strings.TrimPrefix(text[3:len(text)-1], "^")
		_, script := unicode.Scripts[name]
		_, category := unicode.Categories[name]
		if !script && (!category || name == "LC" || name == "Cn") && name != "Any" {
			return errors.New("invalid character class range: " + quoted(text))
		}
	}
	return nil
}

// quoted returns a text in back quotes, cut where it is long.
func quoted(s string) string {
	const longest = 64
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return "`" + s + "`"
}
