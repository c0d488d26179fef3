package ads

import (
	"crypto/sha256"
	"maps"
	"slices"
	"weak"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Quarantine is what a client is not sent for now: resources and parts that it refused, and those that are to be tried
// later. A Differ interns Quarantines, so that clients which refuse the same share what follows from it. It is
// immutable but for the memory of mask; nil holds back nothing.
type Quarantine struct {
	set quarantined
	sum chunked.Sum

	// Owned by the worker goroutine: what mask answered last.
	masks []masked
}

// quarantined is what is held back, by the name of the resource.
type quarantined = chunked.Map[*withheld]

// masked remembers an answer of mask. It keeps neither of the two alive.
type masked struct{ of, is weak.Pointer[Resources] }

// withheld is what is held back of one resource. Immutable.
type withheld struct {
	// parts are held back one by one. Each has the content that is refused, and what the client has instead, if anything.
	parts map[string]heldPart
	// like is the resource that the client accepted last. Where what is left has the same content, like is used, so that
	// the client sees no change.
	like *encodecache.Entry

	// whole tells that the resource is held back while it has, apart from parts, the content refused. good is what the
	// client has instead. leave tells that the client keeps what it has, which is not known here: it then counts as having
	// nothing, and no response mentions the resource.
	whole, leave bool
	refused      encodecache.Sum
	good         *encodecache.Entry

	sum chunked.Sum
}

type heldPart struct {
	refused encodecache.Sum
	good    *encodecache.Fragment
}

// digested returns h with its sum.
func (h *withheld) digested() *withheld {
	out := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(h.parts)) {
		p := h.parts[name]
		name := sha256.Sum256([]byte(name))
		_, _ = out.Write(append(name[:], p.refused[:]...))
		if p.good != nil {
			sum := p.good.Sum()
			_, _ = out.Write(sum[:])
		}
		_, _ = out.Write([]byte{0})
	}
	if h.whole {
		_, _ = out.Write(append([]byte{1}, h.refused[:]...))
	}
	for i, e := range []*encodecache.Entry{h.good, h.like} {
		if e != nil {
			sum := e.Sum()
			_, _ = out.Write(append([]byte{byte(2 + i)}, sum[:]...))
		}
	}
	if h.leave {
		_, _ = out.Write([]byte{4})
	}
	h.sum = chunked.Sum(out.Sum(nil)[:16])
	return h
}

// apply returns what a client has of e while this is held back; nil for nothing.
func (h *withheld) apply(k kind, e *encodecache.Entry) *encodecache.Entry {
	e = h.without(k, e)
	if h.whole && e != nil && e.Sum() == h.refused {
		return h.good
	}
	return e
}

// without returns e without the parts that are held back.
func (h *withheld) without(k kind, e *encodecache.Entry) *encodecache.Entry {
	if len(h.parts) == 0 {
		return e
	}
	return with(k, e, h.like, func(p part) *encodecache.Fragment {
		if bad, ok := h.parts[p.name]; ok && bad.refused == p.fragment.Sum() {
			return bad.good
		}
		return p.fragment
	})
}

// leaves reports whether no response may mention a resource.
func (h *Quarantine) leaves(name string) bool {
	if h == nil {
		return false
	}
	it, ok := h.set.Get(name)
	return ok && it.leave
}

// quarantines interns Quarantines by their content. Its pointers are weak.
type quarantines map[chunked.Sum]weak.Pointer[Quarantine]

const quarantinesSlack = 64

// quarantine interns a set. It costs what is new of the set.
func (b *Differ) quarantine(set quarantined) *Quarantine {
	if set.Len() == 0 {
		return nil
	}
	name := func(name string, h *withheld) chunked.Sum {
		sum := sha256.Sum256(append(h.sum[:], name...))
		return chunked.Sum(sum[:16])
	}
	sum := set.Digest(name, joinSums)
	if h := b.quarantines[sum].Value(); h != nil {
		return h
	}
	if b.quarantines == nil {
		b.quarantines = quarantines{}
	}
	if len(b.quarantines) >= b.quarantinesSwept+quarantinesSlack {
		maps.DeleteFunc(b.quarantines, func(_ chunked.Sum, w weak.Pointer[Quarantine]) bool { return w.Value() == nil })
		b.quarantinesSwept = len(b.quarantines)
	}
	h := &Quarantine{set: set, sum: sum}
	b.quarantines[sum] = weak.Make(h)
	return h
}

// view is what a client with some Quarantine should have of some Resources.
type view struct {
	of    *Resources
	holds *Quarantine
	is    *Resources
}

// maxMasks bounds how many answers of mask one Quarantine remembers.
const maxMasks = 4

// mask returns the view of c of a client with the Quarantine h. It starts from before, the last view of the same
// client, and works out what differs. Clients with the same c and h get the same pointer.
func (b *Differ) mask(k kind, c *Resources, h *Quarantine, before view) view {
	if h == nil || c == nil {
		return view{c, h, c}
	}
	if before.of == c && before.holds == h {
		return before
	}
	for _, m := range h.masks {
		if is := m.is.Value(); is != nil && m.of.Value() == c {
			return view{c, h, is}
		}
	}
	if before.is == nil {
		before = view{of: c, is: c}
	}
	section := before.is.Section.Apply(remask(k, c, h, before))
	v := view{c, h, c}
	if !section.Same(c.Section) {
		v.is = &Resources{Section: section}
	}
	if len(h.masks) == maxMasks {
		h.masks = append(h.masks[:0], h.masks[1:]...)
	}
	h.masks = append(h.masks, masked{weak.Make(c), weak.Make(v.is)})
	return v
}

// remask returns what has changed since the view before: of the Resources, and of what is held back.
func remask(k kind, c *Resources, h *Quarantine, before view) (edits []chunked.Edit[*encodecache.Entry]) {
	edit := func(name string) {
		e := c.get(name)
		if it, ok := h.set.Get(name); ok && e != nil {
			e = it.apply(k, e)
		}
		edits = append(edits, chunked.Edit[*encodecache.Entry]{Key: name, Value: e, Delete: e == nil})
	}
	c.Section.Diff(before.of.section(), func(d chunked.Change[*encodecache.Entry]) { edit(d.Key) })
	var was quarantined
	if before.holds != nil {
		was = before.holds.set
	}
	h.set.Diff(was, func(d chunked.Change[*withheld]) { edit(d.Key) })
	return edits
}
