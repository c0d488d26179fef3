package shard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// reading returns a Memory of which so many percent are live.
func reading(percent int64) Memory { return Memory{Live: percent << 20, Limit: 100 << 20} }

// runOf makes an encoded run of n bytes at least, and its key.
func runOf(name string, n int) (blockKey, *encodecache.Block) {
	e := encodecache.NewLeaf(xdstype.ClusterURL, name, encodecache.NewFragment(make([]byte, n)))
	m := chunked.New([]chunked.Item[*encodecache.Entry]{{Key: name, Value: e}})
	for c := range m.Chunks() {
		return blockKey{chunk: c}, encodecache.NewSotWBlock(func(yield func(*encodecache.Entry) bool) { yield(e) })
	}
	panic("no chunk")
}

// TestKeptRunsGiveWay keeps runs in any order under readings of any kind: what is kept never exceeds what the last
// reading allows, what leaves was not used for the longest time, and where others use most of the memory nothing is
// kept.
func TestKeptRunsGiveWay(t *testing.T) {
	keys, runs := make([]blockKey, 12), make([]*encodecache.Block, 12)
	for i := range keys {
		keys[i], runs[i] = runOf(fmt.Sprint("run", i), 1<<20+i<<18)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{Workers: 1, Now: time.Now, After: time.After})
		var used []int // the oracle: what is kept, the one used last at the end
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if i := rapid.IntRange(-3, len(keys)-1).Draw(t, "run"); i >= 0 {
				if s.kept.find(keys[i]) == nil {
					s.kept.keep(keys[i], runs[i])
				}
				// one that is larger than all that may be kept makes no room for itself
				if int64(runs[i].Len()) <= s.kept.most {
					used = append(slices.DeleteFunc(used, func(u int) bool { return u == i }), i)
				}
			} else {
				others := rapid.Int64Range(0, 100<<20).Draw(t, "others")
				s.MemoryRead(Memory{Live: others + s.kept.held(), Limit: 100 << 20})
				if f := s.MemoryStats(); others >= keepBelow<<20 && f.Kept > 0 || f.KeptLimit > 100<<20/keptShare ||
					others+f.Kept > max(others, keepBelow<<20) {
					t.Fatalf("others have %d: %+v", others, f)
				}
			}
			for sum := total(runs, used); sum > s.kept.most; sum = total(runs, used) {
				used = used[1:]
			}
			for i, k := range keys {
				if has := s.kept.runs[k] != nil; has != slices.Contains(used, i) {
					t.Fatalf("run %d is kept: %v; used lately: %v", i, has, used)
				}
			}
			if s.kept.held() != total(runs, used) {
				t.Fatalf("%d bytes are counted of %d", s.kept.held(), total(runs, used))
			}
		}
	})
}

func total(runs []*encodecache.Block, of []int) (n int64) {
	for _, i := range of {
		n += int64(runs[i].Len())
	}
	return n
}

// TestShortMemoryAnswersOneAtATime: while memory is short, proxies that connect are answered one after the other, each
// once those before it have what they were given; those that are connected go on getting endpoints; and when memory is
// there again, all others are answered.
func TestShortMemoryAnswersOneAtATime(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		f.table("x=1 y=1")
		w := f.set("x=1 y=1", "")
		comes := func(i int) *fakeStream {
			s := f.attach(fmt.Sprint("n", i), nil)
			s.backlog = true
			f.shards.Assigned(s.id, class(fmt.Sprint("c", i)), w)
			synctest.Wait()
			return s
		}
		connected := comes(0)
		connected.reads()
		f.shards.Receive(connected.id, ads.Request{Delta: true, TypeURL: xdstype.EndpointURL,
			Subscribe: f.shards.opts.Names.Of([]string{"x"})})
		synctest.Wait()
		connected.reads()
		f.shards.MemoryRead(reading(90))
		var all []*fakeStream
		for i := range 10 {
			all = append(all, comes(i+1))
		}
		answered := func() (n int) {
			synctest.Wait()
			for _, s := range all {
				if len(s.got) > 0 {
					n++
				}
			}
			return n
		}
		expect(t, "answered while the first has not read", fmt.Sprint(answered()), "1")
		had := len(connected.got)
		f.table("x=2 y=1")
		if len(connected.got) == had {
			t.Error("a change of endpoints waits for memory")
		}
		for i := range 5 {
			next := slices.IndexFunc(all, func(s *fakeStream) bool { return s.backlog && len(s.got) > 0 })
			all[next].reads()
			expect(t, fmt.Sprint("answered when ", i+1, " have read"), fmt.Sprint(answered()), fmt.Sprint(i+2))
		}
		f.shards.MemoryRead(reading(shortUntil + 2))
		expect(t, "answered while it is nearly enough", fmt.Sprint(answered()), "6")
		f.shards.MemoryRead(reading(50))
		expect(t, "answered when memory is there again", fmt.Sprint(answered()), "10")
		if m := f.shards.MemoryStats(); m.Shortages != 1 || m.Short {
			t.Errorf("%+v", m)
		}
	})
}

// TestShortMemoryNeverStopsEverybody: even clients that read nothing, all of them while memory stays short, hold each
// other up for their grace only.
func TestShortMemoryNeverStopsEverybody(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		f.table("x=1")
		f.shards.MemoryRead(reading(99))
		w := f.set("x=1", "")
		var all []*fakeStream
		for i := range 8 {
			s := f.attach(fmt.Sprint("n", i), nil)
			s.backlog = true
			f.shards.Assigned(s.id, class(fmt.Sprint("c", i)), w)
			all = append(all, s)
		}
		time.Sleep(time.Duration(len(all)) * (grace + time.Second))
		synctest.Wait()
		for i, s := range all {
			if len(s.got) == 0 {
				t.Errorf("client %d was never answered", i)
			}
		}
	})
}

// TestShortMemoryPlansOneAtATime: the planner is asked for one proxy at a time while memory is short, and for as many
// as ever afterwards.
func TestShortMemoryPlansOneAtATime(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.shards.gate.SetLimit(4)
		f.shards.MemoryRead(reading(90))
		for i := range 9 {
			f.attach(fmt.Sprint("n", i), nil)
		}
		expect(t, "planned for while memory is short", fmt.Sprint(len(f.planner.attached)), "1")
		f.shards.Assigned(1, class("c"), f.set("x=1", ""))
		synctest.Wait()
		expect(t, "asked for when one was answered", fmt.Sprint(len(f.planner.attached)), "2")
		f.shards.MemoryRead(reading(10))
		expect(t, "asked for when memory is there again", fmt.Sprint(len(f.planner.attached)), "5")
	})
}

// TestTightMemoryLetsGoOfAllThatOnlySavesTime: runs, EncodedAnys of resources and what the Differs remember go when
// others have most of the memory; what is sent after that is what would have been sent.
func TestTightMemoryLetsGoOfAllThatOnlySavesTime(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		var many []string
		for i := range 80 {
			many = append(many, fmt.Sprintf("x%d=1", i))
		}
		f.table(strings.Join(many, " "))
		w := f.set(strings.Join(many, " "), "")
		big := bigRoute()
		w.Sections[xdstype.Route] = w.Sections.Of(xdstype.Route).Set("big", big)
		frame := big.EncodedAny()
		first, second := f.attach("first", nil), f.attach("second", nil)
		f.shards.Assigned(first.id, class("c"), w)
		synctest.Wait()
		if f.shards.MemoryStats().Kept == 0 || big.EncodedAny() != frame {
			t.Fatal("nothing is kept while there is memory")
		}
		f.shards.MemoryRead(reading(keepBelow + 5))
		synctest.Wait()
		if m := f.shards.MemoryStats(); m.Kept > 0 || m.KeptLimit > 0 || m.GaveWay == 0 || m.Gone == 0 {
			t.Errorf("%+v", m)
		}
		if big.EncodedAny() == frame {
			t.Error("a Frame is kept")
		}
		f.shards.Assigned(second.id, class("c"), w)
		synctest.Wait()
		if a, b := first.got[0], second.got[0]; a.Len() != b.Len() {
			t.Errorf("%d bytes were sent before, %d after", a.Len(), b.Len())
		}
		if f.shards.MemoryStats().Kept > 0 {
			t.Error("runs are kept again while memory is tight")
		}
	})
}

// bigRoute returns a resource whose EncodedAny is kept.
func bigRoute() *encodecache.Entry {
	parts := []*encodecache.Fragment{encodecache.NewFragment(make([]byte, 20<<10))}
	return encodecache.NewComposite(xdstype.RouteURL, "big", encodecache.NewFragment(nil), slices.Values(parts))
}
