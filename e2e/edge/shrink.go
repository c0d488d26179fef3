package edge

import (
	"maps"
	"slices"
)

// Shrink returns the least object that is still bad, as far as leaving out parts and shortening texts goes, asking at
// most limit times. Name, namespace and kind stay.
func Shrink(o Object, limit int, bad func(Object) bool) Object {
	s := shrinker{limit: limit, bad: bad, best: o.Copy()}
	for s.again = true; s.again; {
		s.again = false
		for _, cut := range cuts(s.best.Tree, nil) {
			s.try(cut)
		}
	}
	return s.best
}

// shrinker is one call of Shrink.
type shrinker struct {
	limit int
	bad   func(Object) bool
	best  Object
	again bool
}

// try takes the cut if what is left is still bad.
func (s *shrinker) try(cut cut) {
	if s.limit <= 0 {
		s.again = false
		return
	}
	next := s.best.Copy()
	if !cut.apply(next.Tree) {
		return
	}
	s.limit--
	if s.bad(next) {
		s.best, s.again = next, true
	}
}

// cut makes an object smaller in one place.
type cut struct {
	way   []any // keys of maps and indexes of lists
	short bool  // halve a long text or list in place of leaving the thing out
}

// cuts lists what can be left out of a tree, large parts first, from the end of lists.
func cuts(v any, way []any) []cut {
	var here, below []cut
	step := func(k, e any) {
		to := append(way[:len(way):len(way)], k)
		if !fixed(to) {
			here = append(here, cut{way: to})
		}
		if text, ok := e.(string); ok && len(text) > 40 && !fixed(to) {
			here = append(here, cut{way: to, short: true})
		}
		if l, ok := e.([]any); ok && len(l) > 3 {
			here = append(here, cut{way: to, short: true}, cut{way: to, short: true}, cut{way: to, short: true})
		}
		below = append(below, cuts(e, to)...)
	}
	switch v := v.(type) {
	case Tree:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			step(k, v[k])
		}
	case []any:
		for i := min(len(v), 20) - 1; i >= 0; i-- {
			step(i, v[i])
		}
	}
	return append(here, below...)
}

// fixed reports whether an object is nothing without that part.
func fixed(way []any) bool {
	switch way[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(way) == 1 || way[1] == "name" || way[1] == "namespace" || way[1] == "creationTimestamp"
	case "spec":
		return len(way) == 1
	}
	return false
}

// apply makes the cut; false if what it cuts is gone by now.
func (c cut) apply(root Tree) bool {
	_, ok := c.in(root, c.way)
	return ok
}

// in returns v without what the rest of the way leads to.
func (c cut) in(v any, way []any) (any, bool) {
	if len(way) == 0 {
		switch v := v.(type) {
		case string:
			return v[:len(v)/2], len(v) > 1
		case []any:
			return v[:len(v)/2], len(v) > 1
		}
		return v, false
	}
	last := len(way) == 1 && !c.short
	switch t := v.(type) {
	case Tree:
		k, ok := way[0].(string)
		e, has := t[k]
		if !ok || !has {
			return v, false
		}
		if last {
			delete(t, k)
			return t, true
		}
		next, ok := c.in(e, way[1:])
		t[k] = next
		return t, ok
	case []any:
		i, ok := way[0].(int)
		if !ok || i >= len(t) {
			return v, false
		}
		if last {
			return slices.Delete(t, i, i+1), true
		}
		next, ok := c.in(t[i], way[1:])
		t[i] = next
		return t, ok
	}
	return v, false
}
