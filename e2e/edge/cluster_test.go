package edge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/edge"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestEdgeValuesInCluster writes objects with edge values of Istio's kinds through a real API server. No Envoy refuses
// anything and the other tenant goes on. Then pilotd reads the same objects from a directory, where no API server
// stands before it: what the API server or pilotd refused there, it refuses here, and nothing else.
func TestEdgeValuesInCluster(t *testing.T) {
	s := readSettings(t)
	t.Logf("seed %d; again: EDGE_SEED=%d EDGE_FOR=%v make edge", s.seed, s.seed, s.long)
	kinds := slices.DeleteFunc(edge.Kinds(),
		func(k edge.Kind) bool { return !strings.HasPrefix(k.APIVersion, "networking.istio.io/") })
	m, err := edge.NewMaker(s.seed, kinds)
	if err != nil {
		t.Fatal(err)
	}
	api := &cluster{Cluster: parts.NewCluster(t, parts.StartAPIServer(t)), refused: make(map[value.ObjectKey]string)}
	w := newWorldIn(t, api, api.Sources())
	var all []edge.Object
	refused := make(map[value.ObjectKey]string)
	for end := time.Now().Add(s.long / 4); time.Now().Before(end) && len(all) < 240; {
		var batch []edge.Object
		for slot := range slots {
			o := m.Next(slot).Renamed(len(all) + slot)
			batch = append(batch, o)
		}
		if problem := w.apply(batch); problem != "" {
			t.Fatalf("seed %d: %.4000s", s.seed, problem)
		}
		for key, c := range w.complaints() {
			if c.refused {
				refused[key] = c.lines
			}
		}
		all = append(all, batch...)
	}
	for key, reason := range api.refused {
		refused[key] = "the API server: " + reason
	}
	w.compare(all, refused)
}

// compare starts pilotd on a directory with those objects, and fails where its verdict is another than that in refused.
// Labels and annotations are the API server's own business, and so are texts that it cannot read at all, and nulls,
// which it drops from what is created but refuses in what is applied.
func (w *world) compare(objects []edge.Object, refused map[value.ObjectKey]string) {
	w.t.Helper()
	w.pilotd.Kill()
	d := parts.NewDirectory(w.t)
	files := &directory{Directory: d, t: w.t}
	files.replace(objects)
	w.pilotd = parts.StartPilotd(w.t, d.Sources())
	here := w.complaints()
	same := 0
	for _, o := range objects {
		if slices.ContainsFunc(o.Made, func(made string) bool { return strings.HasPrefix(made, "metadata") }) {
			continue
		}
		there, no := refused[o.Key()]
		if strings.Contains(there, "error decoding YAML") || strings.Contains(there, `: "null"`) {
			continue
		}
		switch c := here[o.Key()]; {
		case c.refused == no:
			same++
		case no:
			w.t.Errorf("%s is refused in a cluster and admitted from a directory:\n%s\n%s\n%.3000s", o.Key(),
				strings.Join(o.Made, "\n"), there, o.YAML())
		default:
			w.t.Errorf("%s is admitted in a cluster and refused from a directory: %s\n%s", o.Key(), c.lines,
				strings.Join(o.Made, "\n"))
		}
	}
	w.t.Logf("%d objects have the same verdict from both, %d of them refused", same, len(refused))
}
