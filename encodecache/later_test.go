package encodecache_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/pilotd/pilotd/encodecache"
)

// The content of an Entry that is made later is made once, and only when somebody asks for it; then the Entry is what
// one with the same content is that was made at once.
func TestLater(t *testing.T) {
	const url = "type.googleapis.com/example.Thing"
	parts := slices.Values([]*encodecache.Fragment{encodecache.NewFragment([]byte{1, 2}),
		encodecache.NewFragment([]byte{3})})
	version, size := encodecache.VersionOf(parts)
	calls := 0
	e := encodecache.NewLater(url, "", func() encodecache.Content {
		calls++
		return encodecache.Content{Version: version, Size: size, Parts: parts}
	})
	if e.Name() != "" || e.TypeURL() != url || e.Absent() || calls != 0 {
		t.Fatalf("%d calls for name and type", calls)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { e.Sum() })
	}
	all.Wait()
	at := encodecache.NewEntry(url, "", encodecache.Content{Version: version, Size: size, Parts: parts})
	if e.Version() != at.Version() || e.Size() != at.Size() || !slices.Equal(e.Message(), at.Message()) ||
		!slices.EqualFunc(e.EncodedAny().Pieces, at.EncodedAny().Pieces, slices.Equal) {
		t.Error("it differs from the Entry that is made at once")
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
