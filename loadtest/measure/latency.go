package measure

import (
	"fmt"
	"slices"
	"time"
)

// Latency says how long something took to reach clients: the first of them, the median, the 99th percentile and the
// last.
type Latency struct {
	Samples int           `json:"samples"`
	First   time.Duration `json:"firstNanoseconds"`
	Median  time.Duration `json:"medianNanoseconds"`
	P99     time.Duration `json:"p99Nanoseconds"`
	Last    time.Duration `json:"lastNanoseconds"`
}

// Typical returns the median of each rank over several measurements of the same thing.
func Typical(of []Latency) Latency {
	middle := func(rank func(Latency) time.Duration) time.Duration {
		if len(of) == 0 {
			return 0
		}
		var all []time.Duration
		for _, l := range of {
			all = append(all, rank(l))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	out := Latency{
		First:  middle(func(l Latency) time.Duration { return l.First }),
		Median: middle(func(l Latency) time.Duration { return l.Median }),
		P99:    middle(func(l Latency) time.Duration { return l.P99 }),
		Last:   middle(func(l Latency) time.Duration { return l.Last }),
	}
	for _, l := range of {
		out.Samples += l.Samples
	}
	return out
}

func (l Latency) String() string {
	return fmt.Sprintf("first %s, median %s, p99 %s, last %s", Short(l.First), Short(l.Median), Short(l.P99),
		Short(l.Last))
}

// Short formats a duration with about three digits.
func Short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
