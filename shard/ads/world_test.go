package ads

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// mesh makes what sessions in tests should send. Its resources are written "name=text": the text is the content, so
// that a route "r=1:a" names the cluster a.
type mesh struct {
	entries map[string]*encodecache.Entry
	made    []*desiredMesh
}

// desiredMesh implements Desired with given resources.
type desiredMesh struct{ resources [numTypes]*Resources }

func (t *desiredMesh) Resources(typ xdstype.Type, _ Subscription) *Resources { return t.resources[typ] }

func newMesh() *mesh { return &mesh{entries: map[string]*encodecache.Entry{}} }

// entry returns a resource; equal ones are one pointer.
func (m *mesh) entry(typ xdstype.Type, name, text string) *encodecache.Entry {
	key := typ.URL() + " " + name + "=" + text
	e, ok := m.entries[key]
	switch {
	case !ok && strings.Contains(text, "|"):
		e = composite(typ, name, text)
		m.entries[key] = e
	case !ok:
		e = encodecache.NewLeaf(typ.URL(), name, encodecache.NewFragment([]byte(typ.String()+" "+name+"="+text)))
		m.entries[key] = e
	}
	return e
}

// composite returns a resource of parts, "header|part:text|part:text".
func composite(typ xdstype.Type, name, text string) *encodecache.Entry {
	words := strings.Split(text, "|")
	header := encodecache.NewFragment(bytesField(headerText, name+"="+words[0]))
	var parts []*encodecache.Fragment
	for _, w := range words[1:] {
		parts = append(parts, testPart(typ, w))
	}
	return encodecache.NewComposite(typ.URL(), name, header, slices.Values(parts))
}

// testPart returns a virtual host or a filter chain, "name:text".
func testPart(typ xdstype.Type, word string) *encodecache.Fragment {
	name, text, _ := strings.Cut(word, ":")
	parts := xdstype.Standard().Row(typ).Parts
	return encodecache.NewFragment(bytesField(parts.Field,
		string(bytesField(parts.Names[0], name))+string(bytesField(headerText, text))))
}

// headerText is a field of the tests' own.
const headerText = 15

func bytesField(number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), text)
}

// partsText returns the text of a composite resource.
func partsText(e *encodecache.Entry) string {
	var out []string
	for f := range e.Parts() {
		if len(out) == 0 {
			header, _ := fieldOf(f.Bytes(), headerText)
			_, text, _ := strings.Cut(string(header), "=")
			out = append(out, text)
			continue
		}
		typ, _ := xdstype.Of(e.TypeURL())
		row := xdstype.Standard().Row(typ)
		in, _ := fieldOf(f.Bytes(), row.Parts.Field)
		text, _ := fieldOf(in, headerText)
		out = append(out, partName(row, f)+":"+string(text))
	}
	return strings.Join(out, "|")
}

// textOf returns the text of a resource.
func textOf(e *encodecache.Entry) string {
	for f := range e.Parts() {
		if _, ok := fieldOf(f.Bytes(), headerText); ok {
			return partsText(e)
		}
		break
	}
	_, text, ok := strings.Cut(string(e.Message()), "=")
	if !ok {
		return "(empty)"
	}
	return text
}

// section returns the resources in words, each "name=text".
func (m *mesh) section(typ xdstype.Type, words []string) Section {
	var s Section
	for _, w := range words {
		name, text, _ := strings.Cut(w, "=")
		s = s.Set(name, m.entry(typ, name, text))
	}
	return s
}

// desired returns a new Desired: the last one with the sections that are given replaced.
func (m *mesh) desired(sections map[xdstype.Type]Section) *desiredMesh {
	next := &desiredMesh{}
	for typ := range next.resources {
		section, given := sections[xdstype.Type(typ)]
		var old *Resources
		if len(m.made) > 0 {
			old = m.made[len(m.made)-1].resources[typ]
		}
		switch {
		case !given && old != nil, old != nil && old.Section.Same(section):
			next.resources[typ] = old
		default:
			next.resources[typ] = &Resources{Section: section}
		}
	}
	m.made = append(m.made, next)
	return next
}

// endpoints changes an endpoint resource wherever one of the Desireds has it.
func (m *mesh) endpoints(name, text string) {
	e := m.entry(xdstype.Endpoint, name, text)
	changed := map[*Resources]*Resources{}
	for _, t := range m.made {
		old := t.resources[xdstype.Endpoint]
		if old.get(name) == nil {
			continue
		}
		if changed[old] == nil {
			changed[old] = &Resources{Section: old.Section.Set(name, e)}
		}
		t.resources[xdstype.Endpoint] = changed[old]
	}
}

// typeOf returns the type of a short name.
func typeOf(short string) (xdstype.Type, bool) {
	rows := xdstype.Standard().Rows()
	i := slices.IndexFunc(rows, func(r xdstype.Row) bool { return r.Short == short })
	return xdstype.Type(max(i, 0)), i >= 0
}

// describe returns a response in one line. aliases names versions in the order of their appearance.
func describe(b *Batch, aliases *aliases) string {
	var s strings.Builder
	if t, ok := xdstype.Of(b.TypeURL); ok {
		fmt.Fprintf(&s, "%v", t)
	} else {
		s.WriteString(b.TypeURL)
	}
	fmt.Fprintf(&s, " nonce=%s", b.Nonce)
	if !b.Delta {
		fmt.Fprintf(&s, " version=%s", aliases.of(b.Version))
	}
	for _, e := range b.Entries {
		fmt.Fprintf(&s, " %s=%s", e.Name(), textOf(e))
	}
	if len(b.Entries)+len(b.Removed) == 0 {
		s.WriteString(" (nothing)")
	}
	if len(b.Removed) > 0 {
		fmt.Fprintf(&s, " removed: %s", strings.Join(b.Removed, " "))
	}
	return s.String()
}

// aliases are short names for versions.
type aliases struct{ seen []string }

func (a *aliases) of(version string) string {
	i := slices.Index(a.seen, version)
	if i < 0 {
		i = len(a.seen)
		a.seen = append(a.seen, version)
	}
	return fmt.Sprintf("v%d", i+1)
}

// version returns the version that an alias stands for.
func (a *aliases) version(alias string) string {
	var i int
	if _, err := fmt.Sscanf(alias, "v%d", &i); err != nil || i < 1 || i > len(a.seen) {
		return alias
	}
	return a.seen[i-1]
}
