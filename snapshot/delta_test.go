package snapshot_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// state is the services of a mesh; each value is there once, so that pointers tell values apart.
type state map[value.ServiceKey]*value.Service

// between returns what differs between two states, by comparison.
func between(a, b state) snapshot.Changes[value.ServiceKey, *value.Service] {
	var out snapshot.Changes[value.ServiceKey, *value.Service]
	for _, s := range []state{a, b} {
		for k := range s {
			out.Add(k, a[k], b[k])
		}
	}
	return out
}

// TestMergedChangesAreTheDifference walks through random states, which come back to where they were now and then: the
// changes of all steps, merged, are what differs between the first state and the last, in whatever groups they merge.
func TestMergedChangesAreTheDifference(t *testing.T) {
	versions := []*value.Service{nil, {Name: "one"}, {Name: "two"}}
	rapid.Check(t, func(t *rapid.T) {
		states := []state{{}}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			next := maps.Clone(states[len(states)-1])
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				k := value.ServiceKey{Host: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host")}
				if next[k] = rapid.SampledFrom(versions).Draw(t, "version"); next[k] == nil {
					delete(next, k)
				}
			}
			states = append(states, next)
		}
		steps := func(from, to int) *snapshot.Delta {
			d := &snapshot.Delta{}
			for i := from; i < to; i++ {
				d.Merge(&snapshot.Delta{Services: between(states[i], states[i+1])})
			}
			return d
		}
		last := len(states) - 1
		cut := rapid.IntRange(0, last).Draw(t, "cut")
		grouped := steps(0, cut)
		grouped.Merge(steps(cut, last))
		want := between(states[0], states[last])
		for _, got := range []*snapshot.Delta{steps(0, last), grouped} {
			if !maps.Equal(got.Services, want) {
				t.Fatalf("got %v, want %v", got.Services, want)
			}
			if got.Empty() != (len(want) == 0) {
				t.Fatalf("%v is said to be empty: %v", got.Services, got.Empty())
			}
		}
	})
}

// A Delta that is merged into another one stays as it is: others read it.
func TestMergeLeavesItsArgument(t *testing.T) {
	k := value.ServiceKey{Host: "a"}
	one, two := &value.Service{Name: "one"}, &value.Service{Name: "two"}
	first, second := &snapshot.Delta{}, &snapshot.Delta{}
	first.Services.Add(k, nil, one)
	second.Services.Add(k, one, two)
	var sum snapshot.Delta
	sum.Merge(first)
	sum.Merge(second)
	if got := first.Services[k]; got.New != one {
		t.Errorf("merging changed what was merged: %v", got)
	}
	if got := sum.Services[k]; got.Old != nil || got.New != two {
		t.Errorf("merged to %v", got)
	}
}
