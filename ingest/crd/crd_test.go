package crd

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

var update = flag.Bool("update", false, "make schemas.json anew from module istio.io/api")

// TestSchemasAreIstios holds schemas.json against the CRDs of the module in go.mod.
func TestSchemasAreIstios(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "kubernetes",
		"customresourcedefinitions.gen.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]value.Kind{} // by CRD
	for _, k := range ingest.Kinds() {
		if k.Spec != nil {
			served[k.CRD()] = k.Name
		}
	}
	all := map[string]any{}
	for _, doc := range strings.Split(string(text), "\n---") {
		var d apiv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		if k, ok := served[d.Name]; ok {
			all[string(k)] = schemaOf(t, &d)
		}
	}
	if len(all) != len(served) {
		t.Fatalf("%d of %d kinds", len(all), len(served))
	}
	want, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schemas.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(schemas, want) {
		t.Fatal("schemas.json is not what module istio.io/api has: go test ./ingest/crd -update makes it anew")
	}
}

// schemaOf returns the schema of all versions of a kind, without descriptions.
func schemaOf(t *testing.T, d *apiv1.CustomResourceDefinition) any {
	var first []byte
	for _, v := range d.Spec.Versions {
		text, err := json.Marshal(v.Schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, text) {
			t.Fatalf("%s: version %s has a schema of its own", d.Name, v.Name)
		}
		first = text
	}
	var s any
	if err := json.Unmarshal(first, &s); err != nil {
		t.Fatal(err)
	}
	describe(s)
	return s
}

// describe takes the descriptions out of a schema, but not a property of that name.
func describe(s any) {
	switch s := s.(type) {
	case []any:
		for _, e := range s {
			describe(e)
		}
	case map[string]any:
		if _, text := s["description"].(string); text {
			delete(s, "description")
		}
		for _, e := range s {
			describe(e)
		}
	}
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := kjson.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCRDRules: types, enumerations, limits and CEL rules are those of the CRDs.
func TestCRDRules(t *testing.T) {
	s := New()
	for _, c := range []struct {
		kind        value.Kind
		spec, field string
	}{
		{value.KindVirtualService, `{hosts: [web], http: [{route: [{destination: {host: web}}]}]}`, ""},
		{value.KindVirtualService,
			`{hosts: [web], http: [{route: [{destination: {host: web, port: {number: "80"}}}]}]}`,
			"spec.http[0].route[0].destination.port.number"},
		{value.KindVirtualService, `{hosts: [web], http: [{route: [{destination: {}}]}]}`,
			"spec.http[0].route[0].destination.host"},
		{value.KindVirtualService,
			`{hosts: [web], http: [{match: [{uri: {prefix: /, exact: /}}], route: [{destination: {host: web}}]}]}`,
			"spec.http[0].match[0].uri"},
		{value.KindVirtualService, `{hosts: [web], http: [{timeout: 0.1ms, route: [{destination: {host: web}}]}]}`,
			"spec.http[0].timeout"},
		{value.KindVirtualService, `{hosts: [web], http: null}`, ""},
		{value.KindVirtualService, `{hosts: [web], nothing: 1}`, "spec.nothing"},
		{value.KindDestinationRule, `{host: web, trafficPolicy: {loadBalancer: {simple: FASTEST}}}`,
			"spec.trafficPolicy.loadBalancer.simple"},
		{value.KindDestinationRule,
			`{host: web, trafficPolicy: {loadBalancer: {simple: RANDOM, warmup: {aggression: 1.5}}}}`,
			"spec.trafficPolicy.loadBalancer.warmup.duration"},
		{value.KindServiceEntry, `{hosts: ["*"], ports: [{number: 80, name: a}]}`, "spec.hosts[0]"},
		{value.KindServiceEntry,
			`{hosts: [x.com], resolution: STATIC, ports: [{number: 80, name: a}], endpoints: [{address: "unix://relative"}]}`, "spec.endpoints[0].address"},
		{value.KindWorkloadEntry, `{labels: {a: b}}`, "spec"},
	} {
		o := object(t, "metadata: {name: x, namespace: a}\nspec: "+c.spec)
		f, ok := s.Judge(c.kind, o)
		if ok != (c.field == "") || f.Field != c.field || !ok && (f.Reason == "" || strings.Contains(f.Reason, "\n")) {
			t.Errorf("%s %s: %+v, want %q", c.kind, c.spec, f, c.field)
		}
	}
}

// BenchmarkJudge is what a schema adds to the reading of one object.
func BenchmarkJudge(b *testing.B) {
	s := New()
	text := `{hosts: [web], http: [{match: [{uri: {prefix: /a}, headers: {x: {exact: why}}}], timeout: 1s, retries: {attempts: 3}, route: [{destination: {host: web, subset: v1}, weight: 90}, {destination: {host: web, subset: v2}, weight: 10}]}]}`
	raw, _ := yaml.YAMLToJSON([]byte("metadata: {name: x}\nspec: " + text))
	s.Judge(value.KindVirtualService, object(b, "spec: "+text))
	b.ReportAllocs()
	for b.Loop() {
		var o map[string]any
		_ = kjson.Unmarshal(raw, &o)
		if f, ok := s.Judge(value.KindVirtualService, o); !ok {
			b.Fatal(f)
		}
	}
}
