package encodecache_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/pilotd/pilotd/encodecache"
)

type originKey struct{ part string }

// TestFragmentsTellTheirKey: what a Table made tells from which Key, also when it is a part of an Entry.
func TestFragmentsTellTheirKey(t *testing.T) {
	fragments := encodecache.NewTable(func(k originKey) *encodecache.Fragment {
		return encodecache.NewFragment([]byte(k.part))
	})
	leaves := encodecache.NewTable(func(k originKey) *encodecache.Entry {
		return encodecache.NewLeaf(typeURL, k.part, encodecache.NewFragment([]byte(k.part)))
	})
	a, b := fragments.Get(originKey{"a"}), fragments.Get(originKey{"b"})
	e := encodecache.NewComposite(typeURL, "r", a,
		slices.Values([]*encodecache.Fragment{b, encodecache.NewFragment(nil)}))
	var got []any
	for f := range e.Parts() {
		got = append(got, f.Origin())
	}
	if want := []any{originKey{"a"}, originKey{"b"}, nil}; !slices.Equal(got, want) {
		t.Errorf("parts come from %v, want %v", got, want)
	}
	if e.Origin() != nil {
		t.Error("an Entry that no Table made has an origin")
	}
	leaf := leaves.Get(originKey{"c"})
	for f := range leaf.Parts() {
		if f.Origin() != any(originKey{"c"}) || leaf.Origin() != any(originKey{"c"}) {
			t.Errorf("a leaf comes from %v, its part from %v", leaf.Origin(), f.Origin())
		}
	}
	if f := encodecache.NewFragmentFrom(nil, originKey{"d"}); f.Origin() != any(originKey{"d"}) {
		t.Errorf("a Fragment of no Table comes from %v", f.Origin())
	}
	f := encodecache.NewTemplate(nil, nil).Fill(nil, originKey{"e"})
	if f.Origin() != any(originKey{"e"}) {
		t.Errorf("what a Template fills in comes from %v", f.Origin())
	}
}

// TestOriginsHoldNothing: a Fragment that tells its Key leaves the Table like any other.
func TestOriginsHoldNothing(t *testing.T) {
	table := encodecache.NewTable(fill)
	f := table.Get(1)
	if f.Origin() != any(1) {
		t.Fatalf("comes from %v", f.Origin())
	}
	runtime.KeepAlive(f)
	f = nil
	awaitLen(t, table, 0)
}
