package shard

import (
	"container/heap"
	"time"
)

// timers are the members whose Sessions want to be told the time, the earliest first. Owned by the worker goroutine.
type timers struct{ heap memberHeap }

// set makes m due at the time at; never when zero.
func (t *timers) set(m *member, at time.Time) {
	switch {
	case at.IsZero():
		t.remove(m)
	case m.heap < 0:
		m.due = at
		heap.Push(&t.heap, m)
	case !m.due.Equal(at):
		m.due = at
		heap.Fix(&t.heap, m.heap)
	}
}

func (t *timers) remove(m *member) {
	if m.heap >= 0 {
		heap.Remove(&t.heap, m.heap)
	}
}

// pop takes out the next member that is due at now, or nil.
func (t *timers) pop(now time.Time) *member {
	if len(t.heap) == 0 || t.heap[0].due.After(now) {
		return nil
	}
	return heap.Pop(&t.heap).(*member)
}

// next is when the next member is due; zero for never.
func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].due
}

// memberHeap implements heap.Interface.
type memberHeap []*member

func (h memberHeap) Len() int           { return len(h) }
func (h memberHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h memberHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heap, h[j].heap = i, j
}

// Push implements heap.Interface.
func (h *memberHeap) Push(x any) {
	m := x.(*member)
	m.heap = len(*h)
	*h = append(*h, m)
}

// Pop implements heap.Interface.
func (h *memberHeap) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	m.heap = -1
	return m
}
