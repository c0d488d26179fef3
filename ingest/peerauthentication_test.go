package ingest

import (
	"fmt"
	"testing"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestPeerAuthenticationVerdicts: what istiod's webhook and CRD refuse is refused, with the field.
func TestPeerAuthenticationVerdicts(t *testing.T) {
	for spec, field := range map[string]string{
		`{}`: "", `{mtls: {mode: STRICT}}`: "", `{mtls: {}}`: "", `{selector: {}}`: "",
		`{selector: {matchLabels: {app: web}}, portLevelMtls: {80: {mode: DISABLE}, 443: {}}}`: "",
		`{portLevelMtls: {80: {mode: DISABLE}}}`:                                               "spec.portLevelMtls",
		`{selector: {}, portLevelMtls: {80: {mode: DISABLE}}}`:                                 "spec.portLevelMtls",
		`{selector: {matchLabels: {app: web}}, portLevelMtls: {0: {mode: DISABLE}}}`:           "spec.portLevelMtls.0",
		`{selector: {matchLabels: {app: web}}, portLevelMtls: {65536: {mode: DISABLE}}}`:       "spec.portLevelMtls.65536",
		`{selector: {matchLabels: {"": web}}}`:                                                 "spec.selector.matchLabels",
		`{selector: {matchLabels: {app: "w*"}}}`:                                               "spec.selector.matchLabels.app",
		`{selector: {matchLabels: {"a*": web}}}`:                                               "spec.selector.matchLabels.a*",
		fmt.Sprintf(`{selector: {matchLabels: {app: a%064d}}}`, 0):                             "spec.selector.matchLabels.app",
		`{mtls: {mode: 7}}`: "spec.mtls.mode",
	} {
		s := NewStore(newKeeper(), quiet(t), "kube")
		s.Synced("kube")
		s.Apply(decode(t, "kube", "kind: PeerAuthentication\nmetadata: {name: x, namespace: a}\nspec: "+spec))
		got := ""
		if r := s.Rejections(); len(r) > 0 {
			got = r[0].Field
		}
		if got != field {
			t.Errorf("%s is refused for %q, want %q", spec, got, field)
		}
	}
}

// TestPolicyOfTheRootNamespaceThatSelects is in force nowhere, and that is told.
func TestPolicyOfTheRootNamespaceThatSelects(t *testing.T) {
	reports := report.New(report.Options{Log: testLog(t)})
	s := NewStore(newKeeper(), Settings{Reports: reports}, "kube")
	s.Synced("kube")
	const text = "kind: PeerAuthentication\nmetadata: {name: x, namespace: %s}\nspec: {selector: {matchLabels: {a: b}}}"
	for namespace, want := range map[string]int{"istio-system": 1, "shop": 0} {
		s.Apply(decode(t, "kube", fmt.Sprintf(text, namespace)))
		got := 0
		for _, p := range reports.All() {
			if p.Key.Kind == value.KindPeerAuthentication && p.Key.Namespace == namespace {
				got++
			}
		}
		if got != want {
			t.Errorf("of one in %s %d problems are told, want %d", namespace, got, want)
		}
	}
}
