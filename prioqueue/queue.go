// Package prioqueue is a priority queue whose items can be taken out, or moved when their order changes.
//
// An item keeps its own position, so that finding it costs nothing. The package imports nothing of this module.
package prioqueue

import (
	"container/heap"
	"iter"
	"slices"
)

// Position is where an item is in its Queue. The zero Position is that of an item in no Queue. An item has one for each
// Queue that it can be in, and only the Queue writes it.
type Position struct{ index int } // one more than the index in the heap

// Queued reports whether the item is in the Queue.
func (p Position) Queued() bool { return p.index > 0 }

// Queue holds items, of which the least comes first. It is not safe for concurrent use. One that has been long and is
// empty again gives its memory back.
type Queue[T any] struct{ items items[T] }

// New makes an empty Queue in which less orders the items, and position finds each item's own Position.
func New[T any](less func(a, b T) bool, position func(T) *Position) *Queue[T] {
	return &Queue[T]{items[T]{less: less, position: position}}
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items.list) }

// First returns the least item; the Queue must have one.
func (q *Queue[T]) First() T { return q.items.list[0] }

// All yields the items in no order that means anything.
func (q *Queue[T]) All() iter.Seq[T] { return slices.Values(q.items.list) }

// Put adds an item, or moves it to where it belongs now if it is there.
func (q *Queue[T]) Put(item T) {
	if p := q.items.position(item); p.Queued() {
		heap.Fix(&q.items, p.index-1)
		return
	}
	heap.Push(&q.items, item)
}

// Take takes out the least item; the Queue must have one.
func (q *Queue[T]) Take() T { return heap.Pop(&q.items).(T) }

// Remove takes out an item if it is there.
func (q *Queue[T]) Remove(item T) {
	if p := q.items.position(item); p.Queued() {
		heap.Remove(&q.items, p.index-1)
	}
}

// items implements heap.Interface.
type items[T any] struct {
	list     []T
	less     func(a, b T) bool
	position func(T) *Position
}

func (s *items[T]) Len() int           { return len(s.list) }
func (s *items[T]) Less(i, j int) bool { return s.less(s.list[i], s.list[j]) }
func (s *items[T]) Swap(i, j int) {
	s.list[i], s.list[j] = s.list[j], s.list[i]
	s.position(s.list[i]).index, s.position(s.list[j]).index = i+1, j+1
}

// Push implements heap.Interface.
func (s *items[T]) Push(x any) {
	s.list = append(s.list, x.(T))
	s.position(x.(T)).index = len(s.list)
}

// Pop implements heap.Interface.
func (s *items[T]) Pop() any {
	last := len(s.list) - 1
	item := s.list[last]
	s.list = slices.Delete(s.list, last, last+1)
	if last == 0 {
		s.list = nil
	}
	s.position(item).index = 0
	return item
}
