package scenario

import (
	"math"
	"sync"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/xdstype"
)

// mark returns what change n of a run says: the numbers begin again when they end.
func mark(n int) int { return 1 + (n-1)%mesh.LastMark }

// tracker knows which client has which change. Changes of one type are numbered; they concern lanes objects in turn, so
// that a later change of a lane makes up for an earlier one.
type tracker struct {
	mu sync.Mutex
	// Guarded by mu.
	series
	// by client and lane: the last change, from 1; lane+1-lanes where none; most where it does not concern the client
	last    [][]int32
	present []int // by lane: how many it concerns
	missing int   // pairs of client and change
	each    measure.Histogram
	all     measure.Histogram
	seconds []measure.Latency // of those that are over
	second  measure.Histogram // the present one
	waiting chan struct{}     // closed when no more than enough are missing
	enough  int
	written []time.Duration // when change base+1+i was written, since start
}

// series is what a tracker follows.
type series struct {
	of xdstype.Type
	// lost says that a change is received when its mark is gone.
	lost  bool
	base  int // the number before the first change
	lanes int
	start time.Time
}

const most = math.MaxInt32

// begin starts a series of changes; the first is number base+1. concerns says of whom a lane is.
func (t *tracker) begin(s series, clients int, concerns func(client, lane int) bool) {
	last := make([][]int32, clients)
	present := make([]int, s.lanes)
	for i := range last {
		last[i] = make([]int32, s.lanes)
		for lane := range s.lanes {
			last[i][lane] = most
			if concerns(i, lane) {
				present[lane]++
				last[i][lane] = int32(lane + 1 - s.lanes)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.series, t.last, t.present, t.written, t.missing, t.waiting = s, last, present, nil, 0, nil
	t.each, t.all, t.second, t.seconds = measure.Histogram{}, measure.Histogram{}, measure.Histogram{}, nil
}

// write makes a change with a call that says when it was made. Nobody's receipt is looked at meanwhile. It returns how
// many clients the change concerns.
func (t *tracker) write(edit func(lane, mark int) (time.Time, error)) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.written)
	at, err := edit(n%t.lanes, mark(t.base+1+n))
	if err != nil {
		return 0, err
	}
	t.written = append(t.written, at.Sub(t.start))
	t.missing += t.present[n%t.lanes]
	return t.present[n%t.lanes], nil
}

// received takes what a client got.
func (t *tracker) received(client int, at time.Time, r *sidecar.Receipt) {
	if len(r.Marks)+len(r.Lost) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	marks := r.Marks
	if t.lost {
		marks = r.Lost
	}
	if r.Type != t.of || t.last == nil {
		return
	}
	for _, m := range marks {
		t.take(client, t.number(m), at)
	}
	if t.missing <= t.enough && t.waiting != nil {
		close(t.waiting)
		t.waiting = nil
	}
}

// number returns the latest change of the series that has a mark; less than 1 if none has. The caller holds mu.
func (t *tracker) number(m int) int {
	latest := len(t.written)
	if latest == 0 {
		return 0
	}
	return latest - (mark(t.base+latest)-m+mesh.LastMark)%mesh.LastMark
}

// take notes that a client has change n. The caller holds mu.
func (t *tracker) take(client, n int, at time.Time) {
	if n < 1 {
		return
	}
	last := &t.last[client][(n-1)%t.lanes]
	if int(*last) >= n {
		return
	}
	oldest := int(*last) + t.lanes
	t.missing -= (n - int(*last)) / t.lanes
	*last = int32(n)
	now := at.Sub(t.start)
	after := now - t.written[oldest-1]
	for len(t.seconds) < int(now/time.Second) {
		t.seconds = append(t.seconds, t.second.Latency())
		t.second = measure.Histogram{}
	}
	t.second.Add(after)
	t.each.Add(after)
}

// reached returns a channel that is closed when no more than some pairs of client and change written so far are
// missing.
func (t *tracker) reached(missing int) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	if t.missing <= missing {
		close(done)
	} else {
		t.waiting, t.enough = done, missing
	}
	return done
}

// next returns the latency since the last next, and how many pairs of client and change are missing.
func (t *tracker) next() (l measure.Latency, missing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l = t.each.Latency()
	t.all.Merge(&t.each)
	t.each = measure.Histogram{}
	return l, t.missing
}

// histogram returns all latencies of the series.
func (t *tracker) histogram() *measure.Histogram {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all
	return &all
}

// end fills in a phase with the whole series.
func (t *tracker) end(p *Phase) {
	t.next()
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Missing = t.missing
	p.Latency, p.Distribution = t.all.Latency(), t.all.Percentiles()
	p.Staleness = append(t.seconds, t.second.Latency())
	t.last = nil
}
