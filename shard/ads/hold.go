package ads

import (
	"maps"
	"slices"
	"strings"
	"weak"

	"github.com/pilotd/pilotd/encodecache"
)

// Holds are the resources that a client refused: it keeps the last good version of each, or none, until there is another. Interned by a
// Book, so that clients that refuse the same share what follows. Immutable; nil is none.
type Holds struct {
	byName map[string]held
	// left are the names of those that are left alone.
	left *Names
}

// held is one refused resource.
type held struct {
	// refused is the version that the client refused. Any other is sent.
	refused encodecache.Sum
	// good is what the client has instead; nil when it should have none.
	good *encodecache.Entry
	// leave takes nothing from a client that has a version that is not known here.
	leave bool
}

type maskKey struct {
	of    *Content
	holds *Holds
}

// holdTable interns Holds.
type holdTable map[string]weak.Pointer[Holds]

const holdTableSlack = 64

func (b *Book) hold(byName map[string]held) *Holds {
	if len(byName) == 0 {
		return nil
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		h := byName[name]
		key.WriteString(name)
		key.WriteByte(0)
		key.Write(h.refused[:])
		if h.good != nil {
			sum := h.good.Sum()
			key.Write(sum[:])
		}
		if h.leave {
			key.WriteByte(1)
		}
		key.WriteByte(0)
	}
	if h := b.holds[key.String()].Value(); h != nil {
		return h
	}
	if b.holds == nil {
		b.holds = holdTable{}
	}
	if len(b.holds) >= holdTableSlack {
		maps.DeleteFunc(b.holds, func(_ string, w weak.Pointer[Holds]) bool { return w.Value() == nil })
	}
	var left []string
	for name, h := range byName {
		if h.leave {
			left = append(left, name)
		}
	}
	h := &Holds{byName: byName, left: b.table.Of(left)}
	b.holds[key.String()] = weak.Make(h)
	return h
}

// mask is c as a client with those Holds should have it.
func (b *Book) mask(c *Content, h *Holds) *Content {
	if h == nil || c == nil {
		return c
	}
	key := maskKey{c, h}
	if m, ok := b.masked[key]; ok {
		return m
	}
	section := c.Section
	for name, held := range h.byName {
		if e := c.get(name); e == nil || e.Sum() != held.refused || held.leave {
			continue
		}
		if held.good != nil {
			section = section.Set(name, held.good)
		} else {
			section = section.Delete(name)
		}
	}
	m := c
	if !section.Same(c.Section) {
		m = &Content{Section: section}
	}
	b.masked[key] = m
	return m
}

// held is what is held back now.
func (r *refusal) held() *Holds {
	if r == nil {
		return nil
	}
	return r.holds
}

// of is what is known of the resource of that name, if it is bad.
func (r *refusal) of(name string) (h held, bad bool) {
	if r != nil {
		h, bad = r.bad[name]
	}
	return h, bad
}
