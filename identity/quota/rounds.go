package quota

import "container/list"

// Rounds orders waiting items in rounds, with one item of each caller in a round. So a caller with a thousand waiting
// items delays another caller by one item only. The zero value is empty. Not safe for concurrent use.
type Rounds[T any] struct {
	lines map[Caller]*line
	order list.List // of *line: callers with waiting items, the next one first
	n     int
}

// line are the waiting items of one caller, the oldest first.
type line struct {
	caller Caller
	queue  list.List
	at     *list.Element // in Rounds.order
}

// Place is the position of a waiting item.
type Place struct {
	line *line
	at   *list.Element
}

// Put adds an item.
func (r *Rounds[T]) Put(c Caller, one T) Place {
	if r.lines == nil {
		r.lines = map[Caller]*line{}
	}
	l := r.lines[c]
	if l == nil {
		l = &line{caller: c}
		r.lines[c] = l
		l.at = r.order.PushBack(l)
	}
	r.n++
	return Place{l, l.queue.PushBack(one)}
}

// Take removes and returns the next item, or false if there is none.
func (r *Rounds[T]) Take() (one T, ok bool) {
	first := r.order.Front()
	if first == nil {
		return one, false
	}
	l := first.Value.(*line)
	r.order.MoveToBack(first)
	one = l.queue.Front().Value.(T)
	r.Remove(Place{l, l.queue.Front()})
	return one, true
}

// Remove removes an item that has not been taken.
func (r *Rounds[T]) Remove(p Place) {
	p.line.queue.Remove(p.at)
	r.n--
	if p.line.queue.Len() == 0 {
		r.order.Remove(p.line.at)
		delete(r.lines, p.line.caller)
	}
}

// Drop removes and returns the last item of the caller with the most items, if that has more than c would have with one
// more. Otherwise it returns false.
func (r *Rounds[T]) Drop(c Caller) (one T, ok bool) {
	var most *line
	for _, l := range r.lines {
		if most == nil || l.queue.Len() > most.queue.Len() {
			most = l
		}
	}
	own := 0
	if l := r.lines[c]; l != nil {
		own = l.queue.Len()
	}
	if most == nil || most.queue.Len() <= own+1 {
		return one, false
	}
	last := most.queue.Back()
	one = last.Value.(T)
	r.Remove(Place{most, last})
	return one, true
}

// Len returns the number of waiting items.
func (r *Rounds[T]) Len() int { return r.n }
