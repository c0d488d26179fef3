package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pilotd/pilotd/xdstype"
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
		{"import down", "shard/a.go", doc + `import _ "github.com/pilotd/pilotd/classes"`, nil},
		{"client-go", "shard/a.go", doc + `import _ "k8s.io/client-go/rest"`,
			[]string{"shard/a.go:3: only ingest/kube, cluster and loadtest/cluster import client-go"}},
		{"client-go at home", "ingest/kube/a.go", doc + `import _ "k8s.io/client-go/rest"`, nil},
		{"object's message", "gen/plan/a.go", doc + `import _ "istio.io/api/networking/v1alpha3"`,
			[]string{"gen/plan/a.go:3: gen/plan must not import istio.io/api/networking/v1alpha3: package value has what it says"}},
		{"object's message at the door", "ingest/istio/a.go", doc + `import _ "istio.io/api/networking/v1alpha3"`, nil},
		{"filter's message", "gen/a.go", doc + `import _ "istio.io/api/envoy/config/filter/http/alpn/v2alpha1"`, nil},
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
		{"long line", "gen/a.go", doc + "func f(" + strings.Repeat("a", 120) + " int) {}\n",
			[]string{"gen/a.go:3: 135 columns, at most 120"}},
		{"long line with tabs", "gen/a.go", doc + "func f() {\n" + strings.Repeat("\t", 20) + strings.Repeat("é", 100) +
			"()\n}\n", []string{"gen/a.go:4: 122 columns, at most 120"}},
		{"line of 120", "gen/a.go", doc + "func " + strings.Repeat("é", 113) + "()\n", nil},
		{"long literal", "gen/a.go", doc + "func f() { g(\"" + strings.Repeat("a", 120) + "\") }\n", nil},
		{"raw literal", "gen/a.go", doc + "const c = `\n" + strings.Repeat("a", 130) + "\n`\n", nil},
		{"behind a long literal", "gen/a.go", doc + "func f() { g(\"" + strings.Repeat("a", 120) + "\", b) }\n",
			[]string{"gen/a.go:3: 141 columns, at most 120"}},
		{"long comment", "gen/a.go", doc + "// f " + strings.Repeat("a", 120) + "\nfunc f() {}\n",
			[]string{"gen/a.go:3: 125 columns, at most 120"}},
		{"parameters", "gen/a.go", doc + "func f(a, b int, c, d, e string) {}\nfunc g(a, b, c, d int) {}\n",
			[]string{"gen/a.go:3: 5 parameters, at most 4"}},
		{"parameters of a literal", "gen/a.go", doc + "type t interface{ f(int, int, int, int, int) }\n",
			[]string{"gen/a.go:3: 5 parameters, at most 4"}},
		{"parameters beside a test's t", "gen/a.go", doc + "func f(t *testing.T, a, b, c, d int) {}\n", nil},
		{"page", "gen/a.go", doc + "// f is as no-page.md says, and docs/a.md.\nfunc f() {}\n",
			[]string{"gen/a.go:3: there is no page no-page.md"}},
		{"page by its name", "gen/a.go", doc + "// f is as a.md and https://x.example/b.md say.\nfunc f() {}\n", nil},
		{"invariant", "gen/a.go", doc + "// f keeps invariant I1, and invariant I99.\nfunc f() {}\n",
			[]string{"gen/a.go:3: docs/architecture.md has no invariant I99"}},
		{"type URL", "gen/a.go", doc + "const u = \"" + xdstype.ClusterURL + "\"\n",
			[]string{"gen/a.go:3: the URL of a served type: xdstype has it"}},
		{"type URL at home", "xdstype/a.go", doc + "const u = \"" + xdstype.ClusterURL + "\"\n", nil},
		{"other module", "shared/a.go", "package p\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := check(fstest.MapFS{
				c.path:          {Data: []byte(c.text)},
				"shared/go.mod": {Data: []byte("module shared\n")},
				"docs/a.md":     {}, "docs/architecture.md": {Data: []byte("| I1 | always |\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			got = slices.DeleteFunc(got, func(f string) bool { return strings.Contains(f, "not formatted") }) // TestFormat
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// A file has the form that gofmt gives it.
func TestFormat(t *testing.T) {
	const head = "// Package p does.\npackage p\n\n"
	got, err := check(fstest.MapFS{
		"p/a.go": {Data: []byte(head + "const (\n\ta  = 1\n\tbc = 2\n)\n")},
		"p/b.go": {Data: []byte(head + "const (\n\td = 1\n\tef = 2\n)\n")},
		"p/c.go": {Data: []byte(head + "const g = 1\n\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"p/b.go:5: not formatted: gofmt -w p/b.go", "p/c.go:5: not formatted: gofmt -w p/c.go"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
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

// Links in pages lead to files and headings that are there, and Go files that pages name exist.
func TestLinks(t *testing.T) {
	page := "[a](b.md) [a](../README.md#two-words-here) [a](#mine) [a](https://x.example/y.md) [a](b.md#none)\n# Mine\n" +
		"[a](gone.md) and `shard/a.go`, shard/gone.go, a.go\n"
	got, err := check(fstest.MapFS{
		"docs/a.md": {Data: []byte(page)}, "docs/b.md": {Data: []byte("none\n")},
		"README.md":  {Data: []byte("## Two words, here\n")},
		"shard/a.go": {Data: []byte("// Package p does.\npackage p\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"docs/a.md:1: there is no b.md#none", "docs/a.md:3: there is no gone.md",
		"docs/a.md:3: there is no shard/gone.go"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// A threat needs a test that is there.
func TestThreats(t *testing.T) {
	got := declared{"ca.TestLeaves": true, "ca.FuzzCSR": true}.threats(fstest.MapFS{threatModel: {Data: []byte(
		"| other |\n| --- |\n| x |\n\n| threat | what | test |\n| --- | --- | --- |\n" +
			"| a | b | `ca.TestLeaves`, `ca.FuzzCSR` |\n| `ca.TestLeaves` | b | none |\n| a | b | `ca.TestGone` |\n")}})
	want := []string{threatModel + ":8: no test shows that this threat is met",
		threatModel + ":9: there is no test ca.TestGone"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// An arrow between files that lies on a cycle is found; receivers, and fields that several files declare, are none.
func TestCycles(t *testing.T) {
	const head = "package p\n\n"
	graph := cycles{}
	for path, text := range map[string]string{
		"p/a.go": head + "type T struct{ name string }\nfunc (t T) up() { b() }\n",
		"p/b.go": head + "func b() { c() }\nfunc (t T) down(name string) { _ = U{name: name}.name }\n",
		"p/c.go": head + "type U struct{ name string }\nfunc c() { T{}.up() }\n",
		"q/a.go": head + "type T struct{}\nfunc (T) f() { g() }\n",
		"q/b.go": head + "func (t T) h() {}\nfunc g() { f := 1; _ = f }\n",
	} {
		s, err := parse(fstest.MapFS{path: {Data: []byte(text)}}, path)
		if err != nil {
			t.Fatal(err)
		}
		graph.add(s)
	}
	// a → b → c → a, and b → c once more is the same arrow; q's b has only a receiver of a.
	if p, q := graph["p"].cyclic(), graph["q"].cyclic(); p != 3 || q != 0 {
		t.Errorf("p has %d cyclic arrows, q %d; want 3 and 0: %v", p, q, graph["p"].arrows())
	}
	if got := graph.findings(map[string]int{"p": 2, "q": 0, "r": 0}); len(got) != 1 || !strings.HasPrefix(got[0], "p: 3") {
		t.Errorf("found %q", got)
	}
}
