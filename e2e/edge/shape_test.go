package edge

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestEveryKindIsMade: every kind that pilotd reads has a shape and templates, and every field of the shape gets its
// turn.
func TestEveryKindIsMade(t *testing.T) {
	kinds := Kinds()
	for _, k := range []value.Kind{value.KindNamespace, value.KindNode, value.KindPod, value.KindService,
		value.KindEndpointSlice, value.KindServiceEntry,
		value.KindWorkloadEntry, value.KindVirtualService, value.KindDestinationRule, value.KindGateway, value.KindSidecar} {
		if !slices.ContainsFunc(kinds, func(have Kind) bool { return have.Name == k }) {
			t.Errorf("kind %s is not made", k)
		}
	}
	m, err := NewMaker(1, kinds)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		o := m.Next(i % 30)
		if i < 2000 && !json.Valid(o.JSON()) {
			t.Fatalf("%s is no JSON: %s", o.Key(), o.JSON())
		}
		if all, had := m.Fields(); had == all {
			t.Logf("%d objects for %d fields", i+1, all)
			for _, k := range m.kinds {
				t.Logf("%s: %d fields", k.Name, len(k.paths))
			}
			return
		}
		if i > 200_000 {
			t.Fatal("some field never has its turn")
		}
	}
}
