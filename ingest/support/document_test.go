package support_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/support"
)

var update = flag.Bool("update", false, "write docs/api-support.md")

const documentPath = "../../docs/api-support.md"

const introduction = `# What pilotd serves of each API

Made from ` + "`ingest/support/fields.txt`" + ` by ` + "`go test ./ingest/support -update`" + `; do not edit.

| state | meaning |
| --- | --- |
| served | it has the effect that its documentation says |
| refused | an object that sets it is refused, with object, field and reason |
| not-served | it has no effect yet. An object that sets it is in force and is reported: on ` + "`/debug/rejectionsz`" +
	`, in the log (as an error where it says *security*), and in the metric ` +
	"`pilotd_object_problems{kind,cause=\"not_served\"}`" + ` |
| elsewhere | others than the control plane read it |
| unused | it has no effect in istiod either, or says nothing to a control plane |

Types that only fields use that are not served are not listed: nothing of them is served.

## Kinds that are not served

Their objects are found by name and reported as not served; nothing else of them is read.

| kind | group | what happens instead |
| --- | --- | --- |
`

// document returns docs/api-support.md.
func document() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, k := range ingest.Kinds() {
		if k.NotServed != "" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k.Name.Name(), k.Name.Group(), remark(k.NotServed, k.Security))
		}
	}
	b.WriteString("\nKinds that stand neither here nor below are not read: Ingress, GatewayClass, ReferenceGrant, ServiceExport and ServiceImport among them.\n")
	for s := range support.New().Sections() {
		title := s.Name
		if i := strings.LastIndex(title, "/"); i >= 0 {
			title = title[i+1:]
		}
		if title == "" {
			title = strings.ToUpper(s.Kind[:1]) + s.Kind[1:]
		} else {
			title = strings.TrimPrefix(strings.TrimPrefix(title, "istio.networking.v1alpha3."), "istio.mesh.v1alpha1.")
		}
		fmt.Fprintf(&b, "\n## %s\n\n| %s | state | |\n| --- | --- | --- |\n", title,
			map[string]string{"enum": "value"}[s.Kind]+map[string]string{"message": "field",
				"struct": "field", "annotations": "name", "labels": "name"}[s.Kind])
		for _, n := range s.Names {
			e, _ := s.Entry(n)
			if n == "*" {
				n = "all others"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", n, e.State, remark(e.Remark, e.Security))
		}
	}
	return b.String()
}

func remark(text string, security bool) string {
	if security {
		return strings.TrimSpace(text + " (*security*)")
	}
	return text
}

// TestDocument: docs/api-support.md says what fields.txt says.
func TestDocument(t *testing.T) {
	want := document()
	if *update {
		if err := os.WriteFile(documentPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentPath)
	if err != nil || string(got) != want {
		t.Errorf("docs/api-support.md is not what fields.txt says (%v): run go test ./ingest/support -run TestDocument -update",
			err)
	}
}
