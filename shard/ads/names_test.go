package ads

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

func encodeNames(names ...string) []byte {
	var b []byte
	for _, n := range names {
		b = protowire.AppendTag(b, 3, protowire.BytesType)
		b = protowire.AppendString(b, n)
	}
	return b
}

// Equal sets are one pointer, however they were made.
func TestNamesAreInterned(t *testing.T) {
	table := NewNamesTable()
	ab, err := table.Intern(encodeNames("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	ba, _ := table.Intern(encodeNames("b", "a", "b"))
	if ab != ba || ab != table.Of([]string{"b", "a"}) || ab != table.Edit(table.Of([]string{"a", "c"}), []string{"b"},
		[]string{"c"}) {
		t.Error("equal sets are different pointers")
	}
	if got := slices.Collect(ab.All()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names %q", got)
	}
	if table.Of(nil) != nil || table.Edit(ab, nil, []string{"a", "b"}) != nil {
		t.Error("the empty set is not nil")
	}
	if table.Minus(ab, table.Of([]string{"a", "x"})) != table.Of([]string{"b"}) || table.Minus(ab, ab) != nil {
		t.Error("Minus")
	}
	if table.Union(table.Of([]string{"a"}), table.Of([]string{"b"})) != ab || table.Union(nil, ab) != ab {
		t.Error("Union")
	}
	if !ab.Contains("a") || ab.Contains("c") || (*Names)(nil).Contains("a") {
		t.Error("Contains")
	}
}

// A run of fields that does not decode is an error, not a panic.
func TestNamesThatDoNotDecode(t *testing.T) {
	table := NewNamesTable()
	for _, raw := range [][]byte{{0x1a}, {0x1a, 5, 'a'}, {0x18, 1}, {0xff, 0xff}} {
		if _, err := table.Intern(raw); err == nil {
			t.Errorf("%x decodes", raw)
		}
	}
}

// A set that nobody holds leaves the table.
func TestNamesLeave(t *testing.T) {
	table := NewNamesTable()
	for i := range 100 {
		if _, err := table.Intern(encodeNames(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); runtime.Gosched() {
		runtime.GC()
		if table.Len() == 0 {
			return
		}
	}
	t.Fatalf("%d sets are left that nobody holds", table.Len())
}

// BenchmarkInternRepeat is what the names of a SotW ACK cost: 1,000 names that were seen before.
func BenchmarkInternRepeat(b *testing.B) {
	table := NewNamesTable()
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i))
	}
	raw := encodeNames(names...)
	hold, _ := table.Intern(raw)
	b.ReportAllocs()
	for b.Loop() {
		if n, _ := table.Intern(raw); n != hold {
			b.Fatal("another set")
		}
	}
}
