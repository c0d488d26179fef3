package proxy

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestLabels holds packed labels against the set that they are made of.
func TestLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) value.Labels {
			return rapid.MapOfN(rapid.SampledFrom([]string{"app", "version", "a=b,c", "x"}),
				rapid.SampledFrom([]string{"", "v1", "v2", "1,app=admin"}), 0, 4).Draw(t, label)
		}
		set, selector := draw("set"), draw("selector")
		with := maps.Clone(set)
		with["zero"] = "a\x00app\x00v1"
		packed := PackLabels(with)
		if got := packed.Unpack(); !maps.Equal(got, set) {
			t.Fatalf("got %v, want %v", got, set)
		}
		if got, want := packed.Contains(selector), set.Contains(selector); got != want {
			t.Fatalf("%v contains %v: %v", set, selector, got)
		}
	})
}
