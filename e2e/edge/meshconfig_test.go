package edge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/edge"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestEdgeMeshConfig gives fields of the mesh configuration edge values. It is the operator's own, so traffic may
// change; no Envoy refuses anything and pilotd lives, and with the default again everything is as it was.
func TestEdgeMeshConfig(t *testing.T) {
	s := readSettings(t)
	t.Logf("seed %d; again: EDGE_SEED=%d EDGE_FOR=%v make edge", s.seed, s.seed, s.long)
	m, err := edge.NewMaker(s.seed, []edge.Kind{edge.MeshKind()})
	if err != nil {
		t.Fatal(err)
	}
	// What the mesh does not know must not pass: a sidecar of the test network captures what it sends to service
	// addresses itself, for ever.
	const usual = "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n"
	w := newWorld(t, usual)
	made, admitted := 0, 0
	for end := time.Now().Add(s.long / 4); time.Now().Before(end) && !t.Failed(); {
		var last edge.Object
		for range 10 {
			last = m.Next(0)
			w.setMesh(string(edge.Object{Tree: last.Tree["spec"].(edge.Tree)}.JSON()))
			made++
			if !w.complaints()[value.ObjectKey{Kind: value.KindMeshConfig, Name: "mesh"}].refused {
				admitted++
			}
			if problems := w.faults(); len(problems) > 0 {
				t.Errorf("seed %d: %s\n%s", s.seed, strings.Join(last.Made, "\n"), strings.Join(problems, "\n"))
				break
			}
		}
		if problem := w.judge(func() { w.pilotd.SetMeshConfig(usual) }); problem != "" {
			t.Errorf("seed %d: after the default is back from %s: %s", s.seed, last.Made, problem)
		}
	}
	all, had := m.Fields()
	t.Logf("%d configurations, %d admitted, %d of %d fields had an edge value", made, admitted, had, all)
}

// setMesh writes a mesh configuration and waits until the gateway has an edit that was made after it, but not for long:
// a mesh configuration may cut the way by which that would be seen.
func (w *world) setMesh(text string) {
	w.t.Helper()
	w.pilotd.SetMeshConfig(text)
	w.round++
	w.store.Apply(goodRoute(w.round))
	_ = parts.Poll(time.Second, 20*time.Millisecond, func() error {
		if w.anyRefused() != nil {
			return nil
		}
		return w.seen(w.probes[len(w.probes)-1])
	})
}
