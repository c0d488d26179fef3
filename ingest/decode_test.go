package ingest

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/snapshot/value"
)

// kindNamed returns the kind of that name, which is served or not; of two groups that have it, Istio's.
func kindNamed(t testing.TB, name string) *Kind {
	t.Helper()
	for i, all := 0, Kinds(); i < len(all); i++ {
		if all[i].Name.Name() == name {
			return &all[i]
		}
	}
	t.Fatalf("no kind %q", name)
	return nil
}

// verdict says why an object cannot come into force.
func verdict(e Event) *problem {
	k := NewKindTable()[e.Key.Kind]
	return k.admit(e.Key, k.Strip(new(Stripper), e.Object), limits{envoytext.IstioRegexSize})
}

// decode reads documents of YAML as a source's events. A document with "delete: true" deletes; one of kind MeshConfig
// is the rest as text.
func decode(t testing.TB, source, text string) []Event {
	t.Helper()
	var out []Event
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct{ Name, Namespace string }
			Delete   bool `json:"delete"`
		}
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if head.Kind == "" {
			continue
		}
		k := kindNamed(t, head.Kind)
		e := Event{Source: source, Key: value.ObjectKey{Kind: k.Name, Namespace: head.Metadata.Namespace,
			Name: head.Metadata.Name}}
		switch {
		case head.Delete:
		case k.Name == value.KindMeshConfig:
			e.Object = strings.Replace(doc, "kind: MeshConfig", "", 1)
		default:
			o := k.New()
			if err := yaml.Unmarshal([]byte(doc), o); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			e.Object = o
		}
		out = append(out, e)
	}
	return out
}
