package chunked

import (
	"maps"
	"testing"
)

// TestEdits: what is put wins over what is dropped, whichever comes first.
func TestEdits(t *testing.T) {
	m := New([]Item[int]{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}})
	var e Edits[int]
	if !e.Apply(m).Same(m) || e.List() != nil {
		t.Error("no edits make another Map")
	}
	e.Drop("a")
	e.Put("a", 4)
	e.Put("b", 5)
	e.Drop("b")
	e.Drop("c")
	e.Put("d", 6)
	got := maps.Collect(e.Apply(m).All())
	if want := map[string]int{"a": 4, "b": 5, "d": 6}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
