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
	// UpstreamRegexSize is the largest RE2 program that Envoy accepts by default, without the runtime key
	// re2.max_program_size.error_level.
	UpstreamRegexSize = 100
	// IstioRegexSize is the value of that key in the bootstrap of Istio's proxy.
	IstioRegexSize = 32768
)

// Regex returns the reason why Envoy refuses an RE2 expression whose program may have at most size instructions; nil if
// it accepts it. size 0 means no limit.
func Regex(expression string, size int) error {
	if size == 0 {
		_, err := parse(expression)
		return err
	}
	return new(Meter).Regex(expression, size)
}

const (
	// maxSteps bounds the work of measuring one expression, in visited instructions; that many take some hundredths of
	// a second. An expression without long runs of optional parts takes about five times its size.
	maxSteps = 4 << 20
	// maxObjectSteps bounds the work of one Meter to about half a second. 5,000 ordinary expressions take an eighth of
	// it.
	maxObjectSteps = 8 << 20
)

// Meter measures the regular expressions of one object, and bounds the work for all of them together. The zero value is
// ready to use. Only one goroutine may use a Meter.
type Meter struct{ steps int }

// Regex works like the function Regex, within the Meter's bound.
func (m *Meter) Regex(expression string, size int) error {
	n, err := m.Size(expression)
	if err == nil && n > size {
		return fmt.Errorf("its program has %d instructions, at most %d are allowed", n, size)
	}
	return err
}

// Size returns the number of instructions of the RE2 program that Envoy makes from expression. The error says why the
// expression is invalid, or that measuring it is too much work.
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

// Template returns the reason why Envoy refuses template as the replacement of what expression matched; nil if it
// accepts it. A backslash must be followed by the number of one of the expression's groups, or by another backslash.
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

// parse parses expression as Envoy does: byte by byte, because Envoy tells RE2 that texts are Latin-1. Go's syntax
// differs from RE2's in \C, which only RE2 has, and in some names of character classes, which only Go has.
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

// escapes returns the positions of the parts of an expression that begin with a backslash. A literal part between \Q
// and \E counts as one.
func escapes(expression string) [][]int {
	return regexp.MustCompile(`(?s)\\Q.*?(?:\\E|$)|\\[pP]\{[^}]*\}|\\.`).FindAllStringIndex(expression, -1)
}

// escapesAreBytes refuses hexadecimal or octal escapes above one byte, which RE2 does not accept in Latin-1 texts.
func escapesAreBytes(expression string) error {
	number := regexp.MustCompile(`^\\(?:x\{0*[1-9A-Fa-f][0-9A-Fa-f]{2,}\}|[4-7][0-7]{2})`)
	for _, at := range escapes(expression) {
		if found := number.FindString(expression[at[0]:]); found != "" {
			return fmt.Errorf("invalid escape sequence: %s is more than a byte", quoted(found))
		}
	}
	return nil
}

// anyByte replaces \C, which in RE2 matches any byte, by an expression with the same meaning in Go.
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

// classNames refuses names of Unicode classes that Go has and RE2 has not. RE2 has scripts and general categories by
// their short names, in exactly that spelling, and Any.
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

// quoted returns a text in back quotes, cut if it is long.
func quoted(s string) string {
	const longest = 64
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return "`" + s + "`"
}
