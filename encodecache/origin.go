package encodecache

// origin is what a Fragment, an Entry or a Template was made from: nothing, a Key, or the slot of a Table. A slot
// contains the Key, so no second copy of it is needed.
type origin struct{ of any }

// key returns the Key; nil if there is none.
func (o origin) key() any {
	if s, ok := o.of.(keyed); ok {
		return s.keyOf()
	}
	return o.of
}

// keyed is implemented by slots.
type keyed interface{ keyOf() any }

func (s *slot[K, V]) keyOf() any { return s.key }

// made is a value that remembers what it was made from. A Table calls madeFrom once, before other code sees the value.
type made interface{ madeFrom(s keyed) }

func (f *Fragment) madeFrom(s keyed) { f.from.of = s }

func (e *Entry) madeFrom(s keyed) {
	e.from.of = s
	if e.leaf != nil && e.leaf.from.of == nil { // the leaf's Fragment was made for this Entry alone
		e.leaf.from.of = s
	}
}
