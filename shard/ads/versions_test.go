package ads

import (
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"
	"weak"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// TestFingerprintsHoldNothing: what a Differ remembers of resources keeps none of them once nobody has them (I9).
func TestFingerprintsHoldNothing(t *testing.T) {
	differ := NewDiffer(xdstype.Standard(), NewNamesTable(), NewVerdicts(), func() uint64 { return 1 })
	section := func(text string) Section {
		return chunked.Map[*encodecache.Entry]{}.Set("a",
			encodecache.NewLeaf(xdstype.ClusterURL, "a", encodecache.NewFragment([]byte(text))))
	}
	gone, stays := section("gone"), section("stays")
	e, _ := gone.Get("a")
	before := differ.fingerprintOfSection(stays)
	differ.fingerprintOfSection(gone)
	w := weak.Make(e)
	gone, e = Section{}, nil
	runtime.GC()
	if w.Value() != nil {
		t.Error("a resource is held that nobody has")
	}
	if differ.fingerprintOfSection(stays) != before || len(differ.fingerprints) != 2 {
		t.Errorf("%d chunks are known, want 2", len(differ.fingerprints))
	}
}

// appendEntry appends a name and its version as a request carries them.
func appendEntry(raw []byte, name, version string) []byte {
	entry := protowire.AppendString(protowire.AppendTag(nil, entryName, protowire.BytesType), name)
	entry = protowire.AppendString(protowire.AppendTag(entry, entryVersion, protowire.BytesType), version)
	return protowire.AppendBytes(protowire.AppendTag(raw, 5, protowire.BytesType), entry)
}

// Equal versions make equal fingerprints, in whatever order; others do not, also where the same bytes are cut
// otherwise.
func TestClaims(t *testing.T) {
	table := NewNamesTable()
	read := func(pairs ...string) *Versions {
		var raw []byte
		for i := 0; i < len(pairs); i += 2 {
			raw = appendEntry(raw, pairs[i], pairs[i+1])
		}
		v, err := table.Versions(raw)
		if err != nil {
			t.Fatal(err)
		}
		clear(raw) // nothing of it may be kept
		return v
	}
	ab := read("a", "1", "b", "2")
	if ab.fingerprint != read("b", "2", "a", "1").fingerprint ||
		ab.fingerprint != table.VersionsOf(map[string]string{"a": "1", "b": "2"}).fingerprint {
		t.Error("another order is another fingerprint")
	}
	for _, other := range []*Versions{read("a", "1"), read("a", "2", "b", "1"), read("a", "1", "b", "2", "b", "2"),
		read("a1b", "2"), read("a", "1b2"), read("", "")} {
		if other.fingerprint == ab.fingerprint {
			t.Errorf("%v makes the same fingerprint", other.All())
		}
	}
	if !maps.Equal(ab.All(), map[string]string{"a": "1", "b": "2"}) {
		t.Error("decoded", ab.All())
	}
	if none, err := table.Versions(nil); none != nil || err != nil || none.All() != nil || none.has("a") {
		t.Error("none", none, err)
	}
	for _, bad := range []string{"\x2a", "\x2a\x05a", "\x28\x01", "\x2a\x03\x0a\x01\xff", "\x2a\x02\x0a\x05",
		"\x2a\x01\x0f"} {
		if _, err := table.Versions([]byte(bad)); err == nil {
			t.Errorf("%x decodes", bad)
		}
	}
}

// The fingerprint of a client that has everything is that of the whole, however much of it is a section that others
// share.
func TestClaimOfWhole(t *testing.T) {
	m, table := newMesh(), NewNamesTable()
	differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { return 1 })
	c := &Resources{Section: m.section(xdstype.Cluster, []string{"a=1", "b=2", "c=3"})}
	for _, sub := range []Subscription{{All: true}, {Names: table.Of([]string{"a", "c"})},
		{Names: table.Of([]string{"a", "gone"})}} {
		byName := map[string]string{}
		w := differ.whole(kind{row: differ.rows.Row(xdstype.Cluster), delta: true}, sub, c)
		for _, e := range w.entries {
			byName[e.Name()] = e.Version()
		}
		want := table.VersionsOf(byName).fingerprint
		if first, again := differ.fingerprintOfWhole(w), differ.fingerprintOfWhole(w); first != want || again != want {
			t.Error(sub)
		}
	}
}

// BenchmarkComesBack is what it costs to read the first requests of a Delta client that has everything, and to find
// that out: each client has clusters of its own, and lists what it has in an order of its own.
func BenchmarkComesBack(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, table := newMesh(), NewNamesTable()
			var nonce uint64
			differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { nonce++; return nonce })
			var words []string
			for i := range n {
				words = append(words, fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local=0", i))
			}
			shared, eds := m.section(xdstype.Cluster, words), m.section(xdstype.Endpoint, words)
			entry := func(name string) *encodecache.Entry { return m.entry(xdstype.Cluster, name, "0") }
			var names, edsRaw []byte
			for name, e := range eds.All() {
				names = protowire.AppendString(protowire.AppendTag(names, 3, protowire.BytesType), name)
				edsRaw = appendEntry(edsRaw, name, e.Version())
			}
			edsResources := &Resources{Section: eds}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				own := fmt.Sprintf("inbound|%d||", i%1000)
				cds := &Resources{Section: shared.Set(own, entry(own))}
				desired := &desiredMesh{resources: [numTypes]*Resources{cds, edsResources}}
				cdsRaw := appendEntry(nil, own, entry(own).Version())
				for name, e := range shared.All() {
					cdsRaw = appendEntry(cdsRaw, name, e.Version())
				}
				b.StartTimer()
				s, now := New(differ, Options{Delta: true}), time.Unix(1000, 0)
				s.SetDesired(now, differ, desired)
				has, _ := table.Versions(cdsRaw)
				sent := len(s.Receive(now, differ, &Request{Delta: true, TypeURL: xdstype.ClusterURL,
					Initial: has})[0].Batch.Entries)
				has, _ = table.Versions(edsRaw)
				subscribe, _ := table.Intern(names)
				if more := s.Receive(now, differ, &Request{Delta: true, TypeURL: xdstype.EndpointURL, Subscribe: subscribe,
					Initial: has}); sent+len(
					more,
				) > 0 {
					b.Fatal("something is sent")
				}
				differ.Turn()
			}
		})
	}
}
