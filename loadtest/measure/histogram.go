package measure

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets, each with an error of less than one percent. Its memory does not depend on the
// number of durations. The zero value is empty.
type Histogram struct {
	counts      []int64
	total       int
	least, most time.Duration
}

// fine is the number of buckets for each power of two.
const fine, fineBits = 128, 7

func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 2*fine {
		return int(v)
	}
	exponent := bits.Len64(v) - fineBits - 1
	return exponent*fine + int(v>>exponent)
}

// middle returns the middle of a bucket.
func middle(b int) time.Duration {
	if b < 2*fine {
		return time.Duration(b)
	}
	exponent := b/fine - 1
	return time.Duration(b%fine+fine)<<exponent + time.Duration(1)<<exponent/2
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	b := bucket(d)
	if b >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, b+1-len(h.counts))...)
	}
	h.counts[b]++
	if h.total == 0 || d < h.least {
		h.least = d
	}
	h.most = max(h.most, d)
	h.total++
}

// Merge adds all that another has counted.
func (h *Histogram) Merge(o *Histogram) {
	if o.total == 0 {
		return
	}
	if len(o.counts) > len(h.counts) {
		h.counts = append(h.counts, make([]int64, len(o.counts)-len(h.counts))...)
	}
	for b, n := range o.counts {
		h.counts[b] += n
	}
	if h.total == 0 || o.least < h.least {
		h.least = o.least
	}
	h.most = max(h.most, o.most)
	h.total += o.total
}

// Total returns the number of durations.
func (h *Histogram) Total() int { return h.total }

// rank returns the duration that a given share of all durations does not exceed.
func (h *Histogram) rank(share float64) time.Duration {
	want := int64(share*float64(h.total-1)+0.5) + 1
	switch {
	case want <= 1:
		return h.least
	case want >= int64(h.total):
		return h.most
	}
	for b, n := range h.counts {
		if want -= n; want <= 0 {
			return min(max(middle(b), h.least), h.most)
		}
	}
	return h.most
}

// Latency returns the first, the median, the 99th percentile and the last.
func (h *Histogram) Latency() Latency {
	if h.total == 0 {
		return Latency{}
	}
	return Latency{Samples: h.total, First: h.least, Median: h.rank(0.5), P99: h.rank(0.99), Last: h.most}
}

// Percentiles returns the percentiles 0 to 100; nil if the histogram is empty.
func (h *Histogram) Percentiles() []time.Duration {
	if h.total == 0 {
		return nil
	}
	out := make([]time.Duration, 101)
	for i := range out {
		out[i] = h.rank(float64(i) / 100)
	}
	return out
}
