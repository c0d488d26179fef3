package ads

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// headerPart is the name of a resource's first Fragment, which all others need.
const headerPart = ""

// part is one Fragment of a resource. The name says which part it is in all versions of the resource: the name of a
// virtual host, say.
type part struct {
	name     string
	fragment *encodecache.Fragment
}

// partsOf returns the parts of a resource, the header first; nil for one that is refused or accepted as a whole.
// Endpoints are: their Fragments hold the lengths of others.
func partsOf(k kind, e *encodecache.Entry) []part {
	parts := fragmentsOf(k, e)
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// fragmentsOf works like partsOf, also for a resource of which nothing but the header is left.
func fragmentsOf(k kind, e *encodecache.Entry) (parts []part) {
	if e == nil || !k.parted() {
		return nil
	}
	var seen map[string]int
	for f := range e.Parts() {
		switch {
		case len(parts) == 0:
			parts = append(parts, part{headerPart, f})
			continue
		case len(f.Bytes()) == 0:
			continue
		case seen == nil:
			seen = map[string]int{}
		}
		name := partName(k.row, f)
		seen[name]++
		if n := seen[name]; n > 1 {
			name += "\x00" + strconv.Itoa(n)
		}
		parts = append(parts, part{name, f})
	}
	return parts
}

// parted reports whether resources of the kind are sent without some of their parts when a client refuses these.
func (k kind) parted() bool {
	p := &k.row.Parts
	return p.Field != 0 && !(p.WholeForSidecars && k.sidecar)
}

// named is the Key of a Fragment that knows which part of its resource it is: a value.Origin.
type named interface{ Part() string }

// partName returns the name of a Fragment that is no header: what its Key says, or what stands in its bytes, or its
// content.
func partName(row *xdstype.Row, f *encodecache.Fragment) string {
	if key, ok := f.Origin().(named); ok {
		if name := key.Part(); name != "" {
			return name
		}
	}
	if in, ok := fieldOf(f.Bytes(), row.Parts.Field); ok {
		for _, n := range row.Parts.Names {
			if name, ok := fieldOf(in, n); ok && n != 0 && len(name) > 0 {
				return string(name)
			}
		}
	}
	sum := f.Sum()
	return "#" + string(sum[:])
}

// fieldOf returns the content of the first length-delimited field with that number.
func fieldOf(b []byte, number protowire.Number) ([]byte, bool) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return nil, false
		}
		if num == number && typ == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(b[n:])
			return content, true
		}
		b = b[n+m:]
	}
	return nil, false
}

// with returns a resource of the parts that instead gives for its own: another Fragment, or none to leave the part out.
// It returns e itself if nothing changes, like if that is what comes out, and nil if nothing sensible is left: no
// header, or no part where one is needed.
func with(k kind, e, like *encodecache.Entry, instead func(part) *encodecache.Fragment) *encodecache.Entry {
	parts := partsOf(k, e)
	if parts == nil {
		return e
	}
	changed := false
	fragments := make([]*encodecache.Fragment, 0, len(parts))
	for i, p := range parts {
		f := instead(p)
		changed = changed || f != p.fragment
		switch {
		case f != nil:
			fragments = append(fragments, f)
		case i == 0:
			return nil
		}
	}
	switch {
	case !changed:
		return e
	case len(fragments) < 2 && k.row.Parts.Needed:
		return nil
	case madeOf(k, like, fragments):
		return like
	}
	return encodecache.NewComposite(e.TypeURL(), e.Name(), fragments[0], slices.Values(fragments[1:]))
}

// madeOf reports whether e has the content of these Fragments.
func madeOf(k kind, e *encodecache.Entry, fragments []*encodecache.Fragment) bool {
	return slices.EqualFunc(fragmentsOf(k, e), fragments,
		func(p part, f *encodecache.Fragment) bool { return p.fragment.Sum() == f.Sum() })
}
