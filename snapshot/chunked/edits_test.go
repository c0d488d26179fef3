package chunked

import (
	"maps"
	"slices"
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

// absence is a value that may stand for one that is not there.
type absence struct{ absent bool }

func (a *absence) Absent() bool { return a.absent }

// TestAbsentValueIsADelete: whoever edits a Map, and by whichever way, it never holds a value that is absent.
func TestAbsentValueIsADelete(t *testing.T) {
	there, left := &absence{}, &absence{absent: true}
	m := New([]Item[*absence]{{"a", there}, {"b", there}, {"c", left}, {"d", there}})
	pool, measure := NewPool[*absence](), func(string, *absence) Measure { return Measure{Weight: 1} }
	m = pool.Share(m)
	m.Measure(measure)
	patch := func(e ...Edit[*absence]) Map[*absence] { return NewPatch(e, pool, measure).Of(m) }
	one := []Edit[*absence]{{Key: "b", Value: left}}
	for name, got := range map[string]Map[*absence]{
		"one edit":  m.Apply(one),
		"set":       m.Set("b", left),
		"patch":     patch(one...),
		"new key":   m.Apply([]Edit[*absence]{{Key: "b", Delete: true}, {Key: "e", Value: left}}),
		"last wins": m.Apply([]Edit[*absence]{{Key: "b", Value: there}, {Key: "b", Value: left}}),
	} {
		if keys := slices.Collect(maps.Keys(maps.Collect(got.All()))); len(keys) != 2 || got.Len() != 2 {
			t.Errorf("%s: %d items %v, want a and d", name, got.Len(), keys)
		}
	}
	if m.Len() != 3 {
		t.Errorf("%d items were made, want a, b and d", m.Len())
	}
}
