package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// cycles counts, for each package, the arrows between its files that lie on a cycle: none of them can be drawn in one
// direction with the others. There is an arrow from file to file where the one names something that the other
// declares: a type, function, variable or constant of the package, or an unexported method or field whose name no other
// file of the package declares (exported ones may be those of another package). The receiver of a method is no arrow,
// for a type may spread its methods over files. Tests do not count.
type cycles map[string]*fileGraph // by directory

// fileGraph is what the files of one package declare and name.
type fileGraph struct {
	top     map[string]string          // file that declares a name of the package
	members map[string]map[string]bool // files that declare a method or field of a name
	names   map[string]map[string]bool // by file: the names of the package that it uses
	selects map[string]map[string]bool // by file: the names after a dot
}

// add takes in a file.
func (c cycles) add(s source) {
	if s.test {
		return
	}
	g := c[s.dir()]
	if g == nil {
		g = &fileGraph{map[string]string{}, map[string]map[string]bool{}, map[string]map[string]bool{},
			map[string]map[string]bool{}}
		c[s.dir()] = g
	}
	for _, decl := range s.file.Decls {
		g.declare(s.path, decl)
	}
	g.use(s)
}

func (g *fileGraph) declare(file string, decl ast.Decl) {
	member := func(name string) {
		if ast.IsExported(name) {
			return
		}
		if g.members[name] == nil {
			g.members[name] = map[string]bool{}
		}
		g.members[name][file] = true
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			member(d.Name.Name)
		} else {
			g.top[d.Name.Name] = file
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch v := spec.(type) {
			case *ast.TypeSpec:
				g.top[v.Name.Name] = file
				if kind, ok := v.Type.(*ast.StructType); ok {
					for _, f := range kind.Fields.List {
						for _, n := range f.Names {
							member(n.Name)
						}
					}
				}
			case *ast.ValueSpec:
				for _, n := range v.Names {
					g.top[n.Name] = file
				}
			}
		}
	}
}

// use notes what a file names, but for receivers.
func (g *fileGraph) use(s source) {
	names, selects := map[string]bool{}, map[string]bool{}
	g.names[s.path], g.selects[s.path] = names, selects
	receivers, imported := map[*ast.Ident]bool{}, map[string]bool{}
	for _, spec := range s.file.Imports {
		imported[importName(spec)] = true
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); !ok || !imported[pkg.Name] {
				selects[n.Sel.Name] = true
			}
		case *ast.FuncDecl:
			if n.Recv != nil {
				ast.Inspect(n.Recv, func(r ast.Node) bool {
					if ident, ok := r.(*ast.Ident); ok {
						receivers[ident] = true
					}
					return true
				})
			}
		}
		return true
	})
	for _, ident := range s.file.Unresolved { // what the file itself does not declare
		if !receivers[ident] {
			names[ident.Name] = true
		}
	}
}

// importName returns the name that a file has for a package: its own, or the last part of the path.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(strings.Trim(spec.Path.Value, `"`))
}

// arrows returns the files that each file leads to.
func (g *fileGraph) arrows() map[string][]string {
	out := map[string][]string{}
	for file := range g.names {
		to := map[string]bool{}
		for name := range g.names[file] {
			to[g.top[name]] = true
		}
		for name := range g.selects[file] {
			if files := g.members[name]; len(files) == 1 && g.top[name] == "" {
				maps.Copy(to, files)
			}
		}
		delete(to, "")
		delete(to, file)
		out[file] = slices.Sorted(maps.Keys(to))
	}
	return out
}

// cyclic counts the arrows of a package that lie on a cycle.
func (g *fileGraph) cyclic() (n int) {
	arrows := g.arrows()
	reach := map[string]map[string]bool{}
	var from func(start, file string)
	from = func(start, file string) {
		for _, next := range arrows[file] {
			if !reach[start][next] {
				reach[start][next] = true
				from(start, next)
			}
		}
	}
	for file := range arrows {
		reach[file] = map[string]bool{}
		from(file, file)
	}
	for file, list := range arrows {
		for _, next := range list {
			if reach[next][file] {
				n++
			}
		}
	}
	return n
}

// findings holds each package that has a ceiling against it.
func (c cycles) findings(ceilings map[string]int) (out []string) {
	for dir, most := range ceilings {
		if c[dir] == nil {
			continue
		}
		if n := c[dir].cyclic(); n > most {
			out = append(out, fmt.Sprintf("%s: %d arrows between files lie on cycles, at most %d", dir, n, most))
		}
	}
	return out
}
