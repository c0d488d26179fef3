package proxy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Labels are the labels that a proxy reports, packed into one string: every proxy has its own, and they are rarely
// read, because the labels of the registered workload win over them.
type Labels string

// PackLabels makes Labels. A label with a zero byte, which no selector can name, is left out.
func PackLabels(l value.Labels) Labels {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(l)) {
		if strings.Contains(k+l[k], "\x00") {
			continue
		}
		b.WriteString(k)
		b.WriteByte(0)
		b.WriteString(l[k])
		b.WriteByte(0)
	}
	return Labels(strings.Clone(b.String()))
}

// each yields the labels.
func (l Labels) each() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := string(l); rest != ""; {
			k, after, _ := strings.Cut(rest, "\x00")
			v, next, _ := strings.Cut(after, "\x00")
			if !yield(k, v) {
				return
			}
			rest = next
		}
	}
}

// Unpack returns the labels as a set.
func (l Labels) Unpack() value.Labels { return maps.Collect(l.each()) }

// Contains reports whether every pair of selector is in l. An empty selector selects everything.
func (l Labels) Contains(selector value.Labels) bool {
	found := 0
	for k, v := range l.each() {
		if want, ok := selector[k]; ok && want == v {
			found++
		}
	}
	return found == len(selector)
}
