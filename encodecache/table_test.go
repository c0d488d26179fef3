package encodecache_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pilotd/pilotd/encodecache"
)

func fill(k int) *encodecache.Fragment { return encodecache.NewFragment([]byte{byte(k), byte(k >> 8)}) }

func TestTableFillsOnce(t *testing.T) {
	var running atomic.Int32
	table := encodecache.NewTable(func(k int) *encodecache.Fragment {
		if running.Add(1) > 1 {
			t.Error("two fills of one Key at once")
		}
		defer running.Add(-1)
		runtime.Gosched()
		return fill(k)
	})
	const callers = 64
	got := make([]*encodecache.Fragment, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { got[i] = table.Get(7) })
	}
	wg.Wait()
	for _, f := range got {
		if f != got[0] {
			t.Fatal("one Key has two Fragments")
		}
	}
	if table.Fills() != 1 || table.Len() != 1 {
		t.Errorf("%d fills, %d keys", table.Fills(), table.Len())
	}
}

// awaitLen collects garbage until the table has n Keys: cleanups run some time after a collection.
func awaitLen[V any](t *testing.T, table *encodecache.Table[int, V], n int) {
	t.Helper()
	for range 10_000 {
		if table.Len() == n {
			return
		}
		runtime.GC()
	}
	t.Fatalf("%d Keys are held, want %d", table.Len(), n)
}

// I9: no entry outlives its owner.
func TestTableForgetsWhatNobodyHolds(t *testing.T) {
	table := encodecache.NewTable(fill)
	held := table.Get(1)
	for k := range 1000 {
		table.Get(k)
	}
	awaitLen(t, table, 1)
	if table.Get(1) != held {
		t.Error("a held Fragment was made again")
	}
	fills := table.Fills()
	table.Get(2)
	if table.Fills() != fills+1 {
		t.Error("a forgotten Fragment came back without a fill")
	}
	runtime.KeepAlive(held)
	held = nil
	awaitLen(t, table, 0)
}

// An Entry holds its Fragments; when it goes, they go.
func TestEntriesHoldTheirFragments(t *testing.T) {
	fragments := encodecache.NewTable(fill)
	entries := encodecache.NewTable(func(k int) *encodecache.Entry {
		header, part := fragments.Get(k), fragments.Get(-k)
		return encodecache.NewComposite(typeURL, "r", header,
			func(yield func(*encodecache.Fragment) bool) { yield(part) })
	})
	e := entries.Get(5)
	e.EncodedAny()
	runtime.GC()
	runtime.GC()
	if fragments.Len() != 2 || entries.Len() != 1 {
		t.Errorf("%d fragments, %d entries while one entry is held", fragments.Len(), entries.Len())
	}
	runtime.KeepAlive(e)
	e = nil
	awaitLen(t, entries, 0)
	awaitLen(t, fragments, 0)
}

// Fills of one table may ask the same table, while collected values leave it.
func TestTableUnderCollection(t *testing.T) {
	var table *encodecache.Table[int, encodecache.Fragment]
	table = encodecache.NewTable(func(k int) *encodecache.Fragment {
		if k > 0 {
			table.Get(k / 2)
		}
		return fill(k)
	})
	stop := make(chan struct{})
	var wg, gc sync.WaitGroup
	gc.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				k := (i*7 + g) % 97
				if f := table.Get(k); f.Sum() != fill(k).Sum() {
					t.Error("wrong Fragment of", k)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	gc.Wait()
	awaitLen(t, table, 0)
}

func TestTableSurvivesAFillThatPanics(t *testing.T) {
	bad := true
	table := encodecache.NewTable(func(k int) *encodecache.Fragment {
		if bad {
			panic("broken invariant")
		}
		return fill(k)
	})
	func() {
		defer func() { recover() }()
		table.Get(1)
	}()
	bad = false
	if f := table.Get(1); f.Sum() != fill(1).Sum() {
		t.Error("wrong Fragment after a panic")
	}
}
