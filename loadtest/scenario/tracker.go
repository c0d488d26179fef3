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

// mark returns the mark of change n: marks start again after the last one.
func mark(n int) int { return 1 + (n-1)%mesh.LastMark }

// tracker knows which client has which change. The changes of a series are numbered. They edit several lanes in turn,
// and a later change of a lane replaces an earlier one.
type tracker struct {
	mu sync.Mutex
	// Guarded by mu.
	series
	// last has for each client and lane the last received change, counted from 1; lane+1-lanes if there was none, and
	// the largest number if the lane does not concern the client.
	last    [][]int32
	present []int // number of clients that each lane concerns
	missing int   // pairs of a client and a change that it has not received
	each    measure.Histogram
	all     measure.Histogram
	seconds []measure.Latency // completed seconds
	second  measure.Histogram // the current second
	waiting chan struct{}     // closed once no more than enough pairs are missing
	enough  int
	written []time.Duration // when change base+1+i was written, as time since start
}

// series describes the changes that a tracker follows.
type series struct {
	of xdstype.Type
	// lost says that a change counts as received when its mark is gone.
	lost  bool
	base  int // the number before that of the first change
	lanes int
	start time.Time
}

const most = math.MaxInt32

// begin starts a series of changes, the first with number base+1. concerns tells which lanes concern a client.
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

// write calls edit to make the next change, and returns the number of clients that it concerns. Receipts wait
// meanwhile, because the time of the change is known only afterwards.
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

// received records what a client got.
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

// number returns the latest change of the series with a mark; less than 1 if there is none. The caller holds mu.
func (t *tracker) number(m int) int {
	latest := len(t.written)
	if latest == 0 {
		return 0
	}
	return latest - (mark(t.base+latest)-m+mesh.LastMark)%mesh.LastMark
}

// take records that a client has change n. The caller holds mu.
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

// reached returns a channel that is closed once no more than missing pairs of a client and a change are missing.
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

// next returns the latencies since the last call, and the number of missing pairs.
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

// end fills in the results of a phase.
func (t *tracker) end(p *Phase) {
	t.next()
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Missing = t.missing
	p.Latency, p.Distribution = t.all.Latency(), t.all.Percentiles()
	p.Staleness = append(t.seconds, t.second.Latency())
	t.last = nil
}
