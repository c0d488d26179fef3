// Command taste checks what no linter knows of and every reviewer would say: the direction of imports between packages
// and of arrows between files, package and exported docs, no package-level variables but errors and metrics, no init,
// no clock where time is an input, gofmt's form, budgets of lines, columns and parameters, and that the pages that code
// names, and the code that pages name, are there.
//
//	go run ./.ci/taste        in the root of the module
//
// It reads the source alone and prints file:line for each finding.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	findings, err := check(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "taste:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// source is one parsed file.
type source struct {
	path string // from the root, with slashes
	test bool
	text []byte
	fset *token.FileSet
	file *ast.File
}

func (s source) dir() string {
	if i := strings.LastIndexByte(s.path, '/'); i >= 0 {
		return s.path[:i]
	}
	return "."
}

// at returns a finding at a node.
func (s source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// lines returns how many lines a node takes.
func (s source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// check reads every Go file of this module under root.
func check(root fs.FS) ([]string, error) {
	var findings []string
	documented := make(map[string]bool)
	code, graph, pages := declared{}, cycles{}, newPages(root)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, path, d.Name())
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		s, err := parse(root, path)
		if err != nil || ast.IsGenerated(s.file) {
			return err
		}
		code.add(s)
		graph.add(s)
		for _, rule := range []func(source) []string{imports, variables, inits, clocks, budgets, parameters, columns,
			formatted, docs, typeURLs, pages.comments} {
			findings = append(findings, rule(s)...)
		}
		if !s.test {
			documented[s.dir()] = documented[s.dir()] || s.file.Doc != nil
		}
		return nil
	})
	for dir, has := range documented {
		if !has {
			findings = append(findings, dir+": no package doc")
		}
	}
	if err != nil {
		return nil, err
	}
	unknown, err := code.names(root)
	if err != nil {
		return nil, err
	}
	broken, err := links(root)
	findings = slices.Concat(findings, unknown, code.threats(root), broken, graph.findings(ceilings()))
	slices.Sort(findings)
	return findings, err
}

// skipDir leaves out hidden directories and modules of their own.
func skipDir(root fs.FS, path, name string) error {
	if path == "." {
		return nil
	}
	if _, err := fs.Stat(root, path+"/go.mod"); err == nil || strings.HasPrefix(name, ".") || name == "testdata" {
		return fs.SkipDir
	}
	return nil
}

func parse(root fs.FS, path string) (source, error) {
	s := source{path: path, test: strings.HasSuffix(path, "_test.go"), fset: token.NewFileSet()}
	var err error
	if s.text, err = fs.ReadFile(root, path); err != nil {
		return s, err
	}
	s.file, err = parser.ParseFile(s.fset, path, s.text, parser.ParseComments)
	return s, err
}
