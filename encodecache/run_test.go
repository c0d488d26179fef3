package encodecache

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRunsSendTheSame: a resource that is gathered out of runs is sent as the one that has its Fragments one by one,
// and the bytes of a run are copied once for all resources that have it.
func TestRunsSendTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups [][]*Fragment
		var runs []*Run
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			var group []*Fragment
			for range rapid.IntRange(1, 30).Draw(t, "fragments") {
				size := rapid.SampledFrom([]int{0, 3, 300, 700, 20_000}).Draw(t, "size")
				group = append(group, NewFragment(bytes.Repeat([]byte{byte(len(group))}, size)))
			}
			groups, runs = append(groups, group), append(runs, NewRun(slices.Values(group)))
		}
		all := slices.Values(slices.Concat(groups...))
		version, size := VersionOf(all)
		plain := NewEntry("t", "n", Content{Version: version, Size: size, Parts: all})
		inRuns := NewEntry("t", "n", Content{Version: version, Size: size, Parts: all}).InRuns(slices.Values(runs))
		for _, form := range []func(*Entry) *Response{
			func(e *Entry) *Response {
				return AssembleSotW(Header{TypeURL: "t", Version: "v", Nonce: "1"}, []*Entry{e})
			},
			func(e *Entry) *Response {
				return AssembleDelta(Header{TypeURL: "t", Nonce: "1"}, []*Entry{e}, []string{"gone"})
			},
			func(e *Entry) *Response {
				return (*Assembler)(nil).SotWBlocks(Header{TypeURL: "t", Version: "v", Nonce: "1"}, []*Block{NewSotWBlock(one(e))})
			},
			func(e *Entry) *Response {
				return (*Assembler)(nil).DeltaBlocks(Header{TypeURL: "t", Nonce: "1"}, []*Block{NewDeltaBlock(one(e))}, nil)
			},
		} {
			want, got := form(plain), form(inRuns)
			if !bytes.Equal(got.Buffers().Materialize(), want.Buffers().Materialize()) || got.Len() != want.Len() {
				t.Fatal("other bytes are sent")
			}
		}
		if size > 0 && !runs[0].Shared() || NewRun(slices.Values(groups[0])).Shared() {
			t.Fatal("a run that is sent four times is not shared, or a new one is")
		}
		if f := inRuns.EncodedAny(); f.Len != plain.EncodedAny().Len || inRuns.EncodedAny() == f {
			t.Fatal("the Frame has another length, or is kept")
		}
	})
}

// TestRunIsJoinedForSeveral: what one response alone has is sent from where it lies; what another one has too is joined
// once for all of them.
func TestRunIsJoinedForSeveral(t *testing.T) {
	var group []*Fragment
	for range 40 {
		group = append(group, NewFragment(make([]byte, 400)))
	}
	run := NewRun(slices.Values(group))
	send := func() (pieces [][]byte) {
		version, size := VersionOf(slices.Values(group))
		e := NewEntry("t", "n", Content{Version: version, Size: size, Parts: slices.Values(group)})
		e.InRuns(slices.Values([]*Run{run}))
		r := (*Assembler)(nil).SotWBlocks(Header{TypeURL: "t", Version: "v", Nonce: "1"}, []*Block{NewSotWBlock(one(e))})
		for _, b := range r.Buffers() {
			if len(b.ReadOnlyData()) >= 400 {
				pieces = append(pieces, b.ReadOnlyData())
			}
		}
		return pieces
	}
	first, second, third := send(), send(), send()
	if len(first) != len(group) {
		t.Fatalf("%d pieces are sent the first time, want %d", len(first), len(group))
	}
	for i, p := range first {
		if &p[0] != &group[i].Bytes()[0] {
			t.Errorf("Fragment %d was copied for one response", i)
		}
	}
	if len(second) != 1 || len(third) != 1 || &second[0][0] != &third[0][0] {
		t.Errorf("%d and %d pieces are sent the second and the third time, want one, the same", len(second), len(third))
	}
}

func one(e *Entry) iter.Seq[*Entry] { return slices.Values([]*Entry{e}) }

// BenchmarkSendRuns is a response with a resource of 1,000 Fragments in 16 runs that others have sent already.
func BenchmarkSendRuns(b *testing.B) {
	for _, inRuns := range []bool{false, true} {
		b.Run(fmt.Sprintf("runs=%v", inRuns), func(b *testing.B) {
			var all []*Fragment
			for range 1000 {
				all = append(all, NewFragment(make([]byte, 490)))
			}
			var runs []*Run
			for group := range slices.Chunk(all, 64) {
				runs = append(runs, NewRun(slices.Values(group)))
			}
			version, size := VersionOf(slices.Values(all))
			b.ReportAllocs()
			for b.Loop() {
				e := NewEntry("t", "n", Content{Version: version, Size: size, Parts: slices.Values(all)})
				if inRuns {
					e.InRuns(slices.Values(runs))
				}
				AssembleSotW(Header{TypeURL: "t", Version: "v", Nonce: "1"}, []*Entry{e})
			}
		})
	}
}
