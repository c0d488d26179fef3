package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// told returns the reports of a Registry that something is not served.
func told(r *report.Registry) string {
	var out []string
	for _, s := range r.All() {
		if s.Cause == report.NotServed {
			out = append(out, fmt.Sprint(s.Key, " ", s.Field, " security=", s.Security))
		}
	}
	return strings.Join(out, "\n")
}

// TestWhatIsNotServedIsReported: kinds, fields, annotations and the mesh configuration, each until it is no longer so.
// The objects are in force.
func TestWhatIsNotServedIsReported(t *testing.T) {
	k := newKeeper()
	reports := report.New(report.Options{Log: testLog(t)})
	s := NewStore(k, Settings{Reports: reports}, "dir")
	policy := value.ObjectKey{Kind: value.KindOf("extensions.istio.io", "WasmPlugin"), Namespace: "shop", Name: "deny"}
	s.Apply([]Event{{Source: "dir", Key: policy, Object: NotServed{}, Where: "a.yaml:1"}})
	s.Apply([]Event{{Source: "dir", Key: value.ObjectKey{Kind: value.KindMeshConfig},
		Object: "accessLogFile: /dev/stdout"}})
	s.Apply(decode(t, "dir", `
kind: DestinationRule
metadata: {name: d, namespace: shop}
spec: {host: web, trafficPolicy: {tunnel: {targetHost: x, targetPort: 80}}}
`))
	s.Apply(decode(t, "dir", `
kind: Namespace
metadata: {name: shop, labels: {istio.io/dataplane-mode: ambient}}
`))
	s.Synced("dir")
	want := `DestinationRule shop/d spec.trafficPolicy.tunnel security=false
MeshConfig  accessLogFile security=false
Namespace shop metadata.labels[istio.io/dataplane-mode] security=false
WasmPlugin shop/deny  security=true`
	if got := told(reports); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	rule := value.ObjectKey{Kind: value.KindDestinationRule, Namespace: "shop", Name: "d"}
	if k.state.objects[rule] == nil || len(s.Rejections()) != 0 {
		t.Errorf("in force are %v, and %v are refused", k.state.objects, s.Rejections())
	}
	s.Apply([]Event{{Source: "dir", Key: policy}, {Source: "dir", Key: value.ObjectKey{Kind: value.KindMeshConfig}}})
	s.Apply(decode(t, "dir", "kind: DestinationRule\nmetadata: {name: d, namespace: shop}\nspec: {host: web}"))
	s.Apply(decode(t, "dir", "kind: Namespace\nmetadata: {name: shop}"))
	if got := told(reports); got != "" {
		t.Errorf("still there:\n%s", got)
	}
}
