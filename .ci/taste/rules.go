package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// Budgets: a file or a function that needs more is two.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
	maxParameters    = 4
)

// variables allows package-level variables for errors, metrics and interface checks.
func variables(s source) []string {
	var findings []string
	for _, decl := range s.file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if name.Name == "_" || i < len(v.Values) && (errorOrMetric(v.Values[i]) || testFlag(s, v.Values[i])) ||
					embedded(gen) {
					continue
				}
				findings = append(findings, s.at(name, "package-level variable %s", name.Name))
			}
		}
	}
	return findings
}

func embedded(gen *ast.GenDecl) bool {
	return gen.Doc != nil && strings.HasPrefix(gen.Doc.List[len(gen.Doc.List)-1].Text, "//go:embed")
}

// errorOrMetric reports whether a value is made by package errors, fmt.Errorf or
// prometheus.
func errorOrMetric(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch calledAs(call) {
	case "errors.New", "fmt.Errorf", "status.Error", "status.Errorf":
		return true
	}
	return strings.HasPrefix(calledAs(call), "prometheus.New") || strings.HasPrefix(calledAs(call), "promauto.")
}

// testFlag reports whether a value is a command-line flag of a test, such as -update.
func testFlag(s source, value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	return ok && s.test && strings.HasPrefix(calledAs(call), "flag.")
}

// calledAs returns the called function as the source names it, such as "time.Now".
func calledAs(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if pkg, ok := selector.X.(*ast.Ident); ok {
		return pkg.Name + "." + selector.Sel.Name
	}
	return ""
}

func inits(s source) []string {
	var findings []string
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			findings = append(findings, s.at(f, "init function"))
		}
	}
	return findings
}

// clocks keeps the clock out of the packages that decide: there time is an input.
func clocks(s source) []string {
	decides := false
	for _, dir := range []string{"snapshot", "gen", "encodecache", "shard", "inject"} {
		decides = decides || within(s.dir(), dir)
	}
	if s.test || !decides {
		return nil
	}
	var findings []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name := calledAs(call); name == "time.Now" || name == "time.After" || name == "time.Since" ||
				name == "time.Sleep" {
				findings = append(findings, s.at(call, "%s: time is an input here", name))
			}
		}
		return true
	})
	return findings
}

func budgets(s source) []string {
	var findings []string
	if n := s.lines(s.file); n > maxFileLines {
		findings = append(findings, s.at(s.file, "%d lines, at most %d", n, maxFileLines))
	}
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || flatSwitch(f) || tableTest(s, f) {
			continue
		}
		if n := s.lines(f); n > maxFunctionLines {
			findings = append(findings, s.at(f, "%s has %d lines, at most %d", f.Name.Name, n, maxFunctionLines))
		}
	}
	return findings
}

// parameters finds functions that take too many: some of them belong together, in a type with a name. The t of a test
// does not count.
func parameters(s source) (findings []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncType)
		if !ok {
			return true
		}
		count := f.Params.NumFields()
		if count > 0 && testingT(f.Params.List[0].Type) {
			count--
		}
		if count > maxParameters {
			findings = append(findings, s.at(f, "%d parameters, at most %d", count, maxParameters))
		}
		return true
	})
	return findings
}

// testingT reports whether a type is one of a test's state, such as testing.TB or *rapid.T.
func testingT(kind ast.Expr) bool {
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	selector, ok := kind.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, _ := selector.X.(*ast.Ident)
	return pkg != nil && (pkg.Name == "testing" || pkg.Name == "rapid")
}

// flatSwitch reports whether a function is one dispatch, which may be as long as it has
// cases.
func flatSwitch(f *ast.FuncDecl) bool {
	for _, stmt := range f.Body.List {
		switch stmt.(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt:
			return len(f.Body.List) <= 2
		}
	}
	return false
}

// tableTest reports whether a function is a test, whose length is its table's.
func tableTest(s source, f *ast.FuncDecl) bool {
	return s.test && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Benchmark"))
}

// docs wants a comment on every exported name at package level.
func docs(s source) []string {
	if s.test {
		return nil
	}
	var findings []string
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !saidByInterface(d) {
				findings = append(findings, s.at(d, "%s has no doc", d.Name.Name))
			}
		case *ast.GenDecl:
			findings = append(findings, undocumented(s, d)...)
		}
	}
	return findings
}

func undocumented(s source, d *ast.GenDecl) []string {
	var findings []string
	for _, spec := range d.Specs {
		switch v := spec.(type) {
		case *ast.TypeSpec:
			if v.Name.IsExported() && d.Doc == nil && v.Doc == nil {
				findings = append(findings, s.at(v, "%s has no doc", v.Name.Name))
			}
		case *ast.ValueSpec:
			for _, name := range v.Names {
				if name.IsExported() && d.Doc == nil && v.Doc == nil && v.Comment == nil {
					findings = append(findings, s.at(name, "%s has no doc", name.Name))
				}
			}
		}
	}
	return findings
}

// saidByInterface reports whether a method is one whose meaning everybody knows.
func saidByInterface(d *ast.FuncDecl) bool {
	return d.Recv != nil && (d.Name.Name == "String" || d.Name.Name == "Error" || d.Name.Name == "Unwrap")
}

// exportedReceiver reports whether a function is no method, or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	return d.Recv == nil || ast.IsExported(receiver(d))
}
