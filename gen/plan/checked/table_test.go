package checked

import (
	"testing"

	"github.com/pilotd/pilotd/gen"
)

// TestPanicsInFills: making something of a Key panics. What the Key would have given is left out, once; it is told with
// its objects, and the table goes on with other Keys.
func TestPanicsInFills(t *testing.T) {
	f := NewFaults()
	table := Fragments(f, "thing", func(k gen.CatchAllKey) ([]byte, []gen.Fault) {
		if k.Cluster == "bad" {
			panic("broken invariant")
		}
		return []byte(k.Cluster), nil
	})
	if got := table.Get(gen.CatchAllKey{Cluster: "bad"}); len(got.Bytes()) != 0 {
		t.Errorf("a panic gave %q", got.Bytes())
	}
	if got := table.Get(gen.CatchAllKey{Cluster: "good"}); string(got.Bytes()) != "good" {
		t.Errorf("the next Key gives %q", got.Bytes())
	}
	for range 3 { // it is held: nothing is made twice
		table.Get(gen.CatchAllKey{Cluster: "bad"})
	}
	if table.Fills() != 2 || len(f.standing) != 1 || f.panics != 1 {
		t.Errorf("%d fills, %d faults, %d panics", table.Fills(), len(f.standing), f.panics)
	}
	leaf := Leaves(f, "thing", "type.googleapis.com/a.Thing",
		func(k gen.BlackholeKey) ([]byte, []gen.Fault) { panic("broken") }).Get(gen.BlackholeKey{Port: 80})
	if !leaf.Absent() || leaf.Name() != "blackhole:80" || leaf.Origin() != any(gen.BlackholeKey{Port: 80}) {
		t.Errorf("a panic gave resource %q, absent %v, from %v", leaf.Name(), leaf.Absent(), leaf.Origin())
	}
}
