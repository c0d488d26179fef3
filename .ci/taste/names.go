package main

import (
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"strings"
)

// declared are the names that the packages of this module declare, tests included: "shard.Shards" for a type, a
// function, a variable or a constant of package shard, "shard.Shards.Attach" for a method.
type declared map[string]bool

// add notes what a file declares.
func (d declared) add(s source) {
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiver(decl) + "." + name
			}
			d[s.dir()+"."+name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				d.addSpec(s.dir(), spec)
			}
		}
	}
}

func (d declared) addSpec(dir string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		d[dir+"."+spec.Name.Name] = true
		d.addMembers(dir+"."+spec.Name.Name, spec.Type)
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			d[dir+"."+name.Name] = true
		}
	}
}

// addMembers notes the methods of an interface and the fields of a struct.
func (d declared) addMembers(name string, kind ast.Expr) {
	var members *ast.FieldList
	switch kind := kind.(type) {
	case *ast.InterfaceType:
		members = kind.Methods
	case *ast.StructType:
		members = kind.Fields
	default:
		return
	}
	for _, member := range members.List {
		for _, n := range member.Names {
			d[name+"."+n.Name] = true
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.Name
		default:
			return ""
		}
	}
}

// names finds what a page says about code that is not there: a word in backquotes of the form `dir/package.Name` or
// `dir/package.Type.Method` must name something that the package declares.
func (d declared) names(root fs.FS) ([]string, error) {
	quoted := regexp.MustCompile("`([a-z][a-z0-9/]*)\\.([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)(?:\\(\\))?`")
	pages, err := fs.Glob(root, "docs/*.md")
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md") {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			continue // A page that links to it is reported, not the page that is not there.
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				if d.has(m[1]) && !d[m[1]+"."+m[2]] {
					findings = append(findings, fmt.Sprintf("%s:%d: %s declares no %s", page, i+1, m[1], m[2]))
				}
			}
		}
	}
	return findings, nil
}

// has reports whether there is a package in a directory. Words such as `node.id` and file names name none.
func (d declared) has(dir string) bool {
	for name := range d {
		if rest, ok := strings.CutPrefix(name, dir+"."); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}
