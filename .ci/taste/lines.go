package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"strings"
	"unicode/utf8"
)

// maxColumns is how many characters a line may have; a tab is one.
const maxColumns = 120

// columns finds lines that are too long. A line may go beyond maxColumns within one string literal, which is not broken
// for that: behind it stand only closing brackets, a comma or a plus.
func columns(s source) (findings []string) {
	literals := s.literals()
	for i, line := range strings.Split(string(s.text), "\n") {
		if n := utf8.RuneCountInString(line); n > maxColumns && !literals.hold(i+1, line) {
			findings = append(findings, fmt.Sprintf("%s:%d: %d columns, at most %d", s.path, i+1, n, maxColumns))
		}
	}
	return findings
}

// formatted finds the first line of a file that gofmt would write otherwise.
func formatted(s source) []string {
	want, err := format.Source(s.text)
	if err != nil || bytes.Equal(want, s.text) {
		return nil // A file that has no form is an error already, of parse.
	}
	is, has := bytes.Split(want, []byte("\n")), bytes.Split(s.text, []byte("\n"))
	line := 0
	for line < min(len(is), len(has)) && bytes.Equal(is[line], has[line]) {
		line++
	}
	return []string{fmt.Sprintf("%s:%d: not formatted: gofmt -w %[1]s", s.path, min(line+1, len(is)))}
}

// literals are the string literals of a file: where each begins and ends.
type literals [][2]token.Position

func (s source) literals() (out literals) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			out = append(out, [2]token.Position{s.fset.Position(lit.Pos()), s.fset.Position(lit.End())})
		}
		return true
	})
	return out
}

// hold reports whether all of a line beyond maxColumns lies in one literal, but for what ends the line: brackets that close, and a plus.
func (l literals) hold(number int, line string) bool {
	for _, lit := range l {
		begin, end := 0, len(line)
		switch {
		case lit[0].Line > number || lit[1].Line < number:
			continue
		case lit[0].Line == number:
			begin = lit[0].Column - 1
		}
		if lit[1].Line == number {
			end = lit[1].Column - 1
		}
		if utf8.RuneCountInString(line[:begin]) < maxColumns && strings.Trim(line[end:], ")}],; +") == "" {
			return true
		}
	}
	return false
}
