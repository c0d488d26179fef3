// Package pilotd_test holds the house rules that a machine can check.
package pilotd_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/pilotd/pilotd/"

// mayImport says which rooms of the house a room may import, directly. A room that is not listed may import nothing of the house. Rooms are
// named by their folder; "a/..." is a and all below it.
func mayImport() map[string][]string {
	return map[string][]string{
		"snapshot/chunked": {},
		"snapshot/value":   {},
		"snapshot":         {"snapshot/value", "snapshot/chunked"},
		"encodecache":      {},
		"gen":              {"snapshot/value"},
		"gen/plan":         {"gen", "snapshot", "snapshot/value", "snapshot/chunked", "encodecache"},
		"shard/ads":        {"gen/plan", "snapshot", "snapshot/value", "snapshot/chunked", "encodecache"},
		"shard":            {"shard/ads", "gen/plan", "snapshot", "snapshot/value", "snapshot/chunked", "encodecache"},
		"shard/grpcstream": {"shard", "shard/ads", "gen/plan", "encodecache"},
		"ingest":           {"snapshot", "snapshot/value"},
		"ingest/kube":      {"ingest", "snapshot/value"},
		"ingest/file":      {"ingest", "snapshot/value"},
		"status":           {"snapshot", "snapshot/value"},
		"cmd/pilotd":       {"..."},
		"bench":            {"..."},
		"bench/nullserver": {"encodecache", "shard/grpcstream", "shard/ads"},
		"loadtest":         {"loadtest/..."},
		"e2e":              {"e2e/..."},
		"e2e/parts":        {"e2e/testnet"},
		"examples/run":     {"e2e/parts"},
	}
}

type listed struct {
	ImportPath, Dir string
	Imports         []string
	GoFiles         []string
	Module          struct{ Path string }
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles,Module", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestImports holds the import graph against mayImport, and client-go against the one package that may use it.
func TestImports(t *testing.T) {
	rules := mayImport()
	for _, p := range packages(t) {
		room, inside := strings.CutPrefix(p.ImportPath, module)
		if !inside {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "k8s.io/client-go/") && room != "ingest/kube" && !strings.HasPrefix(room, "e2e") && !strings.HasPrefix(room, "loadtest") {
				t.Errorf("%s imports %s: only ingest/kube talks to Kubernetes", room, imp)
			}
			if to, ok := strings.CutPrefix(imp, module); ok && !allowed(rules[room], to) {
				t.Errorf("%s imports %s: not a way through the house", room, to)
			}
		}
	}
}

func allowed(rules []string, to string) bool {
	for _, r := range rules {
		tree, all := strings.CutSuffix(r, "...")
		if r == to || all && strings.HasPrefix(to+"/", tree) {
			return true
		}
	}
	return false
}

// TestGeneratorsArePure holds invariant I3: package gen reaches no clock, environment, file or network.
func TestGeneratorsArePure(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"gen" {
			continue
		}
		for _, imp := range p.Imports {
			switch imp {
			case "os", "time", "net", "net/http", "math/rand", "math/rand/v2", "sync", "sync/atomic", "context", "log", "log/slog", "runtime", "unsafe":
				t.Errorf("gen imports %s: a generator gets its Key and nothing else", imp)
			}
		}
	}
}

// sources calls f with every Go file of the product, tests left out.
func sources(t *testing.T, f func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		f(path, file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBudgets holds files to 500 lines, functions to 80 lines and parameters to 4, and refuses init functions and package-level variables
// other than errors, metrics and compile-time assertions.
func TestBudgets(t *testing.T) {
	sources(t, func(path string, file *ast.File, fset *token.FileSet) {
		if n := fset.File(file.Pos()).LineCount(); n > 500 {
			t.Errorf("%s has %d lines: a file is one noun, at most 500", path, n)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				checkFunc(t, path, d, fset)
			case *ast.GenDecl:
				checkVars(t, path, d)
			}
		}
	})
}

func checkFunc(t *testing.T, path string, d *ast.FuncDecl, fset *token.FileSet) {
	if d.Name.Name == "init" && d.Recv == nil {
		t.Errorf("%s: init(): registration is explicit here", path)
	}
	lines := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
	if lines > 80 {
		t.Errorf("%s: %s has %d lines: at most 80", path, d.Name.Name, lines)
	}
	params := 0
	for _, p := range d.Type.Params.List {
		params += max(1, len(p.Names))
	}
	if params > 5 {
		t.Errorf("%s: %s has %d parameters: take a struct", path, d.Name.Name, params)
	}
}

func checkVars(t *testing.T, path string, d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		for _, n := range v.Names {
			if n.Name != "_" && !strings.HasPrefix(n.Name, "Err") && !strings.HasPrefix(n.Name, "err") {
				t.Errorf("%s: package-level variable %s: state has an owner here", path, n.Name)
			}
		}
	}
}

// TestDocs asks for a doc comment on every package and every exported name.
func TestDocs(t *testing.T) {
	documented, names := map[string]bool{}, map[string]string{}
	sources(t, func(path string, file *ast.File, _ *token.FileSet) {
		dir := filepath.Dir(path)
		names[dir] = path
		documented[dir] = documented[dir] || file.Doc != nil
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && d.Name.Name != "String" && d.Name.Name != "Error" && (d.Recv == nil || exportedReceiver(d)) {
					t.Errorf("%s: %s has no doc comment", path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: %s has no doc comment", path, ts.Name.Name)
					}
				}
			}
		}
	})
	for dir := range names {
		if !documented[dir] {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	x := d.Recv.List[0].Type
	for {
		switch v := x.(type) {
		case *ast.StarExpr:
			x = v.X
		case *ast.IndexExpr:
			x = v.X
		case *ast.IndexListExpr:
			x = v.X
		case *ast.Ident:
			return v.IsExported()
		default:
			return false
		}
	}
}

// TestNoHiddenClock: time comes in as a value everywhere but in cmd, ingest and what only tests and people run.
func TestNoHiddenClock(t *testing.T) {
	sources(t, func(path string, file *ast.File, _ *token.FileSet) {
		for _, free := range []string{"cmd/", "ingest/", "e2e/", "examples/", "loadtest/", "bench/"} {
			if strings.HasPrefix(filepath.ToSlash(path), free) {
				return
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" {
				switch sel.Sel.Name {
				case "Now", "After", "Sleep", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since":
					t.Errorf("%s: time.%s: time is an input here", path, sel.Sel.Name)
				}
			}
			return true
		})
	})
}
