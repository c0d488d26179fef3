package ads

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/transcript"
	"github.com/pilotd/pilotd/xdstype"
)

// TestAccused holds the texts of testdata/texts against what they accuse: each file has the type, the names of the
// response, the text, and the names that are accused, in this order. Those called envoy are as Envoy 1.40 wrote them.
func TestAccused(t *testing.T) {
	for _, a := range transcript.Read(t, "testdata/texts/*.txtar") {
		for i := 0; i+1 < len(a.Files); i += 2 {
			name, of, _ := strings.Cut(a.Files[i].Name, " ")
			words := strings.Fields(of)
			typ, _ := typeOf(words[0])
			has := func(name string) bool { return slices.Contains(words[1:], name) }
			got := strings.Join(
				accused(xdstype.Standard().Row(typ), strings.TrimSuffix(string(a.Files[i].Data), "\n"), has),
				" ",
			)
			if want := strings.TrimSpace(string(a.Files[i+1].Data)); got != want {
				t.Errorf("%s: %s accuses %q, want %q", a.Name(), name, got, want)
			}
		}
	}
}

// Names are any text: those with odd characters are accused as they are.
func TestAccusedOddNames(t *testing.T) {
	for _, c := range []struct {
		what, text string
		typ        xdstype.Type
		names      []string
		want       string
	}{
		{"quotes and lines in a dump", "goo.gle/debugproto  \nname: \"a\\\"b\\nc\\303\\251\"\n: bad", xdstype.Route,
			[]string{"a\"b\ncé"}, "a\"b\ncé"},
		{"a dump that is cut", "goo.gle/debugproto  \nname: \"a", xdstype.Route, []string{"a"}, ""},
		{"a name with a colon", "Error adding/updating cluster(s) " + "a:b|c: bad, d: bad", xdstype.Cluster,
			[]string{"a", "a:b|c", "d"}, "a:b|c d"},
		{"two readings", "Error adding/updating cluster(s) " + "a: b: bad", xdstype.Cluster, []string{"a", "a: b"}, ""},
		{"names that begin alike", "Error adding/updating cluster(s) " + "ab: bad", xdstype.Cluster,
			[]string{"a", "ab", "abc"}, "ab"},
		{"a name in the reason", "Error adding/updating cluster(s) " + "a: because of b, and c", xdstype.Cluster,
			[]string{"a", "b", "c"}, "a"},
		{"a name in quotes in the reason", "Error adding/updating cluster(s) " +
			"a: 'x, b: y' and \"z, c: \\\", c: \", d: bad", xdstype.Cluster,
			[]string{"a", "b", "c", "d"}, "a d"},
		{"another type's form", "Error adding/updating cluster(s) " + "a: bad", xdstype.Listener, []string{"a"}, ""},
		{"a field of a dump in a list", "Error adding/updating listener(s) " + "a: goo.gle/debugproto  \nb: \"x\"\n: bad\nc: bad\n",
			xdstype.Listener, []string{"a", "b", "c"}, "a c"},
	} {
		has := func(name string) bool { return slices.Contains(c.names, name) }
		if got := strings.Join(accused(xdstype.Standard().Row(c.typ), c.text, has), " "); got != c.want {
			t.Errorf("%s: accuses %q, want %q", c.what, got, c.want)
		}
	}
}

// FuzzAccused gives any text: only names of the response are accused, and nothing panics.
func FuzzAccused(f *testing.F) {
	for _, a := range transcript.Read(f, "testdata/texts/*.txtar") {
		for i, text := range a.Files {
			f.Add(uint8(i), string(text.Data))
		}
	}
	f.Fuzz(func(t *testing.T, typ uint8, text string) {
		known := []string{"a", "b", "80", "a: b", ""}
		for _, name := range accused(xdstype.Standard().Row(xdstype.Type(typ%uint8(numTypes))), text,
			func(name string) bool { return slices.Contains(known, name) }) {
			if !slices.Contains(known, name) {
				t.Fatalf("accuses %q", name)
			}
		}
	})
}
