package file

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"testing"

	networking "istio.io/client-go/pkg/apis/networking/v1"
	core "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/crd"
	"github.com/pilotd/pilotd/snapshot/value"
)

func parseText(path, text string) *parser {
	p := &parser{
		path: path, texts: map[[sha256.Size]byte]*document{},
		rules: rules{kinds: ingest.NewKindTable(),
			mesh:    value.ObjectKey{Kind: value.KindMeshConfig, Namespace: "istio-system", Name: "istio"},
			schemas: crd.New()},
	}
	p.parse([]byte(text))
	return p
}

// told returns a reading in lines that a reader can review: objects with their line, then problems.
func told(p *parser) string {
	var b strings.Builder
	for _, o := range p.objects {
		b.WriteString(strconv.Itoa(o.line) + " " + o.key.String() + "\n")
	}
	for _, x := range p.problems {
		b.WriteString(strconv.Itoa(x.line) + " ! " + x.key.String() + ": " + strings.TrimSpace(x.field+" "+x.reason) +
			"\n")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, path, in, want string }{
		{"every kind", "a.yaml", `
# comment
apiVersion: v1
kind: Namespace
metadata: {name: ns}
--- # the next
apiVersion: v1
kind: Node
metadata: {name: node, namespace: ignored}
...
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {fieldFromTheFuture: 1}, status: {phase: Running}}
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [{port: 80}]}
status: {fieldFromTheFuture: {}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1}
addressType: IPv4
---
apiVersion: networking.istio.io/v1alpha3
kind: Sidecar
metadata: {name: default}
---
apiVersion: networking.istio.io/v1beta1
kind: DestinationRule
metadata: {name: d}
spec: {host: a}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: skipped}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: skipped}
`, `3 Namespace ns
7 Node node
12 Pod ns/p
14 Service default/s
20 EndpointSlice default/s-1
25 Sidecar default/default
29 DestinationRule default/d
`},
		{"lists", "a.yaml", `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata:
    name: a
- apiVersion: v1
  kind: ServiceList
  items:
  - metadata: {name: b}
  - metadata: {name: c}
    sepc: {}
`, `4 Namespace a
11 Service default/b
13 ! Service default/c: sepc is unknown: expected a field of Service
`},
		{"json, with tabs", "a.json",
			"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Namespace\",\n\t\"metadata\": {\"name\": \"a\"}\n}\n\n{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"b\"}}\n",
			"1 Namespace a\n7 Namespace b\n"},
		{"json that ends early", "a.json", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}` +
			"\n" + `{"apiVersion": `,
			"1 Namespace a\n2 !  : is not valid YAML or JSON"},
		{"no object", "a.yaml", "just text\n---\n- a\n---\nnull\n---\na: b\n---\nkind: Service\n",
			`1 !  : is not an object: expected apiVersion, kind and metadata
3 !  : is not an object: expected apiVersion, kind and metadata
7 !  : kind is missing: expected the object's kind
9 !  : apiVersion is missing: expected the version of kind Service
`},
		{"bad names", "a.yaml",
			"apiVersion: v1\nkind: Service\nmetadata: {namespace: x}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: ../../x\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: x\n  namespace: a.b\n",
			`3 !  : metadata.name "" is no name: expected lower case letters, digits, '-' and '.'
8 !  : metadata.name "../../x" is no name: expected lower case letters, digits, '-' and '.'
14 !  : metadata.namespace "a.b" is no namespace: expected lower case letters, digits and '-'
`},
		{"unknown version", "a.yaml", "apiVersion: networking.istio.io/v2\nkind: Gateway\nmetadata: {name: x}\n",
			`1 ! Gateway default/x: apiVersion "v2" is unknown: expected one of v1, v1beta1, v1alpha3`},
		{"unknown field of Istio's", "a.yaml",
			vs("x", "a") + "    retries:\n      attempts: 1\n      perTryTimout: 1s\n",
			`13 ! VirtualService default/x: spec.http[0].retries.perTryTimout is unknown: expected a field of HTTPRetry`},
		{"bad value of Istio's", "a.yaml", vs("x", "a") + "    timeout: soon\n",
			`11 ! VirtualService default/x: spec.http[0].timeout `},
		{"wrong type of Istio's", "a.yaml", vs("x", "a") + "    retries: {attempts: many}\n",
			`11 ! VirtualService default/x: spec.http[0].retries.attempts `},
		{"unknown field of Kubernetes's", "a.yaml",
			"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec:\n  ports:\n  - port: 80\n    tragetPort: 8080\n",
			`7 ! Service default/x: spec.ports[0].tragetPort is unknown: expected a field of Service`},
		{"wrong type of Kubernetes's", "a.yaml",
			"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec:\n  ports:\n  - port: http\n",
			`5 ! Service default/x: spec.ports.port is a string: expected int32`},
		{"twice the same key", "a.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\n  name: y\n",
			`5 !  : is not valid YAML or JSON: key "name" already set in map`},
		{"not yaml", "a.yaml", "\n\napiVersion: v1\nkind: Service\nmetadata:\n\tname: x\n",
			`6 !  : is not valid YAML or JSON: found character that cannot start any token`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := told(parseText(c.path, c.in))
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestYAMLMeansWhatItMeansToKubernetes(t *testing.T) {
	p := parseText("a.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: x, creationTimestamp: \"2024-01-02T03:04:05Z\"}\nspec: {publishNotReadyAddresses: yes, ports: [&p {port: 80, targetPort: web}, {<<: *p, port: 81}]}\n")
	if len(p.objects) != 1 {
		t.Fatal(told(p))
	}
	s := p.objects[0].typed.(*core.Service)
	if !s.Spec.PublishNotReadyAddresses || s.Spec.Ports[1].TargetPort.StrVal != "web" ||
		s.CreationTimestamp.Unix() != 1704164645 {
		t.Errorf("read as %v", s)
	}
}

func TestUnchangedTextsKeepTheirObjects(t *testing.T) {
	first := parseText("a.yaml", vs("a", "a.com")+"---\n"+vs("b", "b.com"))
	second := &parser{path: "a.yaml", rules: first.rules, known: first.texts, texts: map[[sha256.Size]byte]*document{}}
	second.parse([]byte("# moved\n" + vs("a", "a2.com") + "---\n" + vs("b", "b.com")))
	if first.objects[1].typed != second.objects[1].typed || second.objects[1].line != first.objects[1].line+1 {
		t.Error("b was read again, or its line is wrong")
	}
	if first.objects[0].typed == second.objects[0].typed {
		t.Error("a was not read again")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a.yaml", vs("a", "a.com")+"---\nkind: [\n---\napiVersion: v1\nkind: List\nitems: [{kind: Pod}]\n")
	f.Add("a.json", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":80}]}}{"a"`)
	f.Add("a.yaml", "apiVersion: v1\nkind: List\nitems: [&a [*a]]")
	f.Add("a.yaml", "---\n...\n--- |\n x\n%YAML 1.2\n---\n\ufeff")
	f.Fuzz(func(t *testing.T, path, text string) {
		p := parseText(path, text)
		lines := strings.Count(text, "\n") + 1
		for _, o := range p.objects {
			if o.line < 1 || o.line > lines || o.key.Name == "" || o.typed == nil {
				t.Errorf("object %v at line %d of %d", o.key, o.line, lines)
			}
			if v, ok := o.typed.(*networking.VirtualService); ok && v.Namespace == "" {
				t.Error("without a namespace")
			}
		}
		for _, b := range p.problems {
			if b.line < 1 || b.line > lines || b.reason == "" {
				t.Errorf("problem %+v of %d lines", b, lines)
			}
		}
		again := &parser{path: path, rules: p.rules, known: p.texts, texts: map[[sha256.Size]byte]*document{}}
		again.parse([]byte(text))
		if told(again) != told(p) {
			t.Errorf("first\n%s\nthen\n%s", told(p), told(again))
		}
	})
}
