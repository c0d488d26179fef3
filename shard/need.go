package shard

import (
	"container/heap"
	"time"

	"github.com/pilotd/pilotd/shard/ads"
)

// Need is how much a proxy that connects needs its answers.
type Need uint8

// The needs, the greatest first.
const (
	// NewProxy has nothing: it serves no traffic.
	NewProxy Need = iota
	// StaleProxy has something else than it should have.
	StaleProxy
	// ReturningProxy has something; whether it is what it should have is known when it has been planned for.
	ReturningProxy
	// CurrentProxy has what it should have.
	CurrentProxy

	// Needs is how many there are.
	Needs = 4
)

func (n Need) String() string { return [Needs]string{"new", "stale", "returning", "current"}[n] }

// handicap is by how much later than it did a proxy counts as having come. So what needs more goes first, and nobody
// waits for those who come more than five seconds after it, whatever they need.
func (n Need) handicap() time.Duration {
	return [Needs]time.Duration{NewProxy: 0, StaleProxy: time.Second, ReturningProxy: 2 * time.Second,
		CurrentProxy: 5 * time.Second}[n]
}

// claim is a proxy's place in a line. Claims are never equal.
type claim struct {
	since time.Time // with the handicap
	id    uint64
}

func (c claim) before(o claim) bool {
	if order := c.since.Compare(o.since); order != 0 {
		return order < 0
	}
	return c.id < o.id
}

// claimOf is the claim of a member that needs that much.
func claimOf(m *member, n Need) claim {
	return claim{m.came.Add(n.handicap()), m.id}
}

// firstNeed is what is known of a stream by its first request alone.
func firstNeed(r *ads.Request) Need {
	if r.Version == "" && r.Initial == nil {
		return NewProxy
	}
	return ReturningProxy
}

// place is where a member stands in a line.
type place struct {
	member *member
	claim  claim
	need   Need
	at     int // in the line's heap
}

// line is a heap of places, the oldest claim first.
type line struct{ heap placeHeap }

func (l *line) len() int { return len(l.heap) }

func (l *line) push(p *place) { heap.Push(&l.heap, p) }

func (l *line) pop() *place { return heap.Pop(&l.heap).(*place) }

func (l *line) remove(p *place) { heap.Remove(&l.heap, p.at) }

// placeHeap implements heap.Interface.
type placeHeap []*place

func (h placeHeap) Len() int           { return len(h) }
func (h placeHeap) Less(i, j int) bool { return h[i].claim.before(h[j].claim) }
func (h placeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *placeHeap) Push(x any) {
	p := x.(*place)
	p.at = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface. A line that has been long gives its memory back.
func (h *placeHeap) Pop() any {
	old := *h
	last := len(old) - 1
	p := old[last]
	old[last] = nil
	*h = old[:last]
	if last == 0 {
		*h = nil
	}
	return p
}
