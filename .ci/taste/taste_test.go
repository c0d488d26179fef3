package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Each rule finds what it is for, and leaves alone what is allowed.
func TestRules(t *testing.T) {
	const doc = "// Package p does.\npackage p\n"
	for _, c := range []struct {
		name, path, text string
		want             []string
	}{
		{"nothing", "gen/a.go", doc, nil},
		{"package doc", "gen/a.go", "package p\n", []string{"gen: no package doc"}},
		{"import up", "gen/a.go", doc + `import _ "github.com/pilotd/pilotd/shard"`,
			[]string{"gen/a.go:3: gen must not import shard"}},
		{"import down", "shard/a.go", doc + `import _ "github.com/pilotd/pilotd/gen/plan"`, nil},
		{"client-go", "shard/a.go", doc + `import _ "k8s.io/client-go/rest"`,
			[]string{"shard/a.go:3: only ingest/kube and loadtest/cluster import client-go"}},
		{"client-go at home", "ingest/kube/a.go", doc + `import _ "k8s.io/client-go/rest"`, nil},
		{"variable", "gen/a.go", doc + "var cache map[string]int\n",
			[]string{"gen/a.go:3: package-level variable cache"}},
		{"error", "gen/a.go", doc + "var errX = errors.New(\"x\")\nvar _ I = T{}\n", nil},
		{"init", "cmd/a.go", doc + "func init() {}\n", []string{"cmd/a.go:3: init function"}},
		{"clock", "shard/a.go", doc + "func f() { _ = time.Now() }\n",
			[]string{"shard/a.go:3: time.Now: time is an input here"}},
		{"clock at the edge", "cmd/a.go", doc + "func f() { _ = time.Now() }\n", nil},
		{"exported doc", "gen/a.go", doc + "type T struct{}\n", []string{"gen/a.go:3: T has no doc"}},
		{"long function", "gen/a.go", doc + "func f() {\n" + strings.Repeat("\tg()\n", 90) + "}\n",
			[]string{"gen/a.go:3: f has 92 lines, at most 80"}},
		{"other module", "shared/a.go", "package p\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := check(fstest.MapFS{
				c.path:          {Data: []byte(c.text)},
				"shared/go.mod": {Data: []byte("module shared\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// Pages name what is there: packages by their directory, with functions, types, fields and methods.
func TestNamesInPages(t *testing.T) {
	const code = "// Package p does.\npackage p\n\n// T is.\ntype T struct{ F int }\n\n" +
		"// M does.\nfunc (T) M() {}\n\nfunc f() {}\n"
	page := "`shard.T`, `shard.T.M`, `shard.T.F`, `shard.f()`, `node.id`, `shard.gone`, `shard.T.Gone`"
	got, err := check(fstest.MapFS{"shard/a.go": {Data: []byte(code)}, "docs/a.md": {Data: []byte(page)}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"docs/a.md:1: shard declares no T.Gone", "docs/a.md:1: shard declares no gone"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
