package value

import (
	"iter"
	"unique"
)

// Sequence is a list that can be compared, so that it can be part of a Key: equal lists are equal. The zero Sequence is
// empty. Immutable.
type Sequence[V comparable] struct{ first unique.Handle[link[V]] }

type link[V comparable] struct {
	value V
	rest  Sequence[V]
}

// SequenceOf returns the Sequence of a list.
func SequenceOf[V comparable](list []V) (out Sequence[V]) {
	for i := len(list) - 1; i >= 0; i-- {
		out = Sequence[V]{unique.Make(link[V]{list[i], out})}
	}
	return out
}

// Empty reports whether there is nothing in s.
func (s Sequence[V]) Empty() bool { return s == Sequence[V]{} }

// All yields what is in s, in order.
func (s Sequence[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for !s.Empty() {
			l := s.first.Value()
			if !yield(l.value) {
				return
			}
			s = l.rest
		}
	}
}
