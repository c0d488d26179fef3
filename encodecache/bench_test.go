package encodecache_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// leaves returns n resources of size bytes, such as clusters.
func leaves(n, size int) []*encodecache.Entry {
	out := make([]*encodecache.Entry, n)
	for i := range out {
		b := make([]byte, size)
		copy(b, fmt.Sprint(i))
		out[i] = encodecache.NewLeaf(xdstype.ClusterURL,
			fmt.Sprintf("outbound|80||svc-%d.ns", i),
			encodecache.NewFragment(b))
	}
	return out
}

// composite returns one resource of n parts of size bytes, such as a route configuration.
func composite(n, size int) *encodecache.Entry {
	parts := make([]*encodecache.Fragment, n)
	for i := range parts {
		b := make([]byte, size)
		copy(b, fmt.Sprint(i))
		parts[i] = encodecache.NewFragment(b)
	}
	return encodecache.NewComposite(typeURL, "80", encodecache.NewFragment([]byte("header")), slices.Values(parts))
}

func BenchmarkAssemble(b *testing.B) {
	a := encodecache.NewAssembler(identifier)
	for _, c := range []struct {
		name    string
		entries []*encodecache.Entry
	}{
		{"1000clusters700B", leaves(1000, 700)},
		{"1000clusters1500B", leaves(1000, 1500)},
		{"1endpoint300B", leaves(1, 300)},
		{"route1000hosts500B", []*encodecache.Entry{composite(1000, 500)}},
	} {
		b.Run("sotw/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			var r *encodecache.Response
			for b.Loop() {
				r = a.SotW(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, c.entries)
			}
			b.SetBytes(int64(r.Len()))
			b.ReportMetric(float64(r.Pieces()), "pieces")
		})
		b.Run("delta/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			var r *encodecache.Response
			for b.Loop() {
				r = a.Delta(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, c.entries, nil)
			}
			b.SetBytes(int64(r.Len()))
			b.ReportMetric(float64(r.Pieces()), "pieces")
		})
	}
}

// BenchmarkFrame is what one changed virtual host of 1,000 costs after its encoding: hash and join.
func BenchmarkFrame(b *testing.B) {
	b.Run("make", func(b *testing.B) {
		e := composite(1000, 500)
		b.ReportAllocs()
		for b.Loop() {
			e.Drop()
			e.EncodedAny()
		}
	})
	b.Run("version", func(b *testing.B) {
		e := composite(1000, 500)
		b.ReportAllocs()
		for b.Loop() {
			encodecache.VersionOf(e.Parts())
		}
	})
}

func BenchmarkTableHit(b *testing.B) {
	table := encodecache.NewTable(fill)
	f := table.Get(3)
	b.ReportAllocs()
	for b.Loop() {
		if table.Get(3) != f {
			b.Fatal("missed")
		}
	}
}
