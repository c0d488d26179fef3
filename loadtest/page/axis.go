package page

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// quantity is what an axis shows.
type quantity int

const (
	number quantity = iota
	seconds
	duration // in seconds
	percent
	bytes
)

// axis begins at 0.
type axis struct {
	kind quantity
	most float64 // what it reaches; of what is drawn by default
}

// ticks returns some five round numbers from 0 up to most at least.
func (a axis) ticks() []float64 {
	step, unit := a.most/5, 1.0
	if a.kind == bytes {
		for unit*1024 <= a.most {
			unit *= 1024
		}
	}
	step /= unit
	magnitude := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*magnitude >= step {
			step = m * magnitude
			break
		}
	}
	if a.kind == number && a.most > 5 {
		step = max(step, 1)
	}
	var out []float64
	for i := 0; ; i++ {
		v := float64(i) * step * unit
		out = append(out, v)
		if v >= a.most {
			return out
		}
	}
}

// label returns a value as people read it.
func (a axis) label(v float64) string {
	switch {
	case v == 0:
		return "0"
	case a.kind == percent:
		return short(v) + "%"
	case a.kind == seconds:
		return short(v) + " s"
	case a.kind == duration && v < time.Millisecond.Seconds():
		return short(v*1e6) + " µs"
	case a.kind == duration && v < 1:
		return short(v*1e3) + " ms"
	case a.kind == duration:
		return short(v) + " s"
	case a.kind == bytes:
		return size(v)
	case v >= 10000:
		return short(v/1000) + "k"
	}
	return short(v)
}

func size(v float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if v < 1024 {
			return fmt.Sprintf("%s %s", short(v), unit)
		}
		v /= 1024
	}
	return short(v) + " GiB"
}

// short returns a number with no more digits than tell ticks apart.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }
