package ingest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestSourcesAtOnce lets sources send at the same time: what comes out is what one after the other gives.
func TestSourcesAtOnce(t *testing.T) {
	const sources, rounds = 4, 50
	name := func(i int) string { return fmt.Sprintf("source-%d", i) }
	var all []string
	for i := range sources {
		all = append(all, name(i))
	}
	k := newKeeper()
	s := NewStore(k, quiet(t), all...)
	send := func(s *Store, i, round int) {
		s.Apply([]Event{largeSlice(0, i, 3, round%2 == 0), largePod(0, i, round%3, fmt.Sprint(round))})
	}
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() {
			s.Apply(decode(t, name(i), strings.ReplaceAll(oneService, "web", "s0")))
			for round := range rounds {
				send(s, i, round)
				if round == rounds/2 {
					s.Synced(name(i))
				}
				s.Rejections()
			}
		})
	}
	wg.Wait()
	fresh := newKeeper()
	one := NewStore(fresh, quiet(t), all...)
	for i := range sources {
		one.Apply(decode(t, name(i), strings.ReplaceAll(oneService, "web", "s0")))
		for round := range rounds {
			send(one, i, round)
		}
		one.Synced(name(i))
	}
	if got, want := lines(&k.whole), lines(&fresh.whole); !slices.Equal(got, want) {
		t.Fatalf("at once:\n%s\none after the other:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
