package secrets

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot/chunked"
)

// numbered returns names that begin alike.
func numbered(begin string, n int) Names {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("kubernetes://", begin, i)
	}
	return namesOf(out...)
}

// next moves a View to other names, as a client does that asks for them.
func (h *house) next(v *view, names Names) *view {
	w := &view{}
	w.View = h.Open(v.who, names, v.View, func() { w.changes++ })
	v.View.Close()
	return w
}

// A client that changes one of many names has that name looked at, and no other one: also where another client of its
// identity stays with the names that there were before.
func TestChangeOfOneNameCostsOne(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		const many, changes = 10_000, 300
		names := numbered("n", many)
		stays, moves := h.open(who("gateway")), h.open(who("gateway"))
		stays, moves = h.next(stays, names), h.next(moves, names)
		synctest.Wait()
		if got := h.Stats().Looked; got != many {
			t.Errorf("%d names were looked at for two lists of the same %d", got, many)
		}
		for i := range changes {
			if i%2 == 0 {
				moves = h.next(moves, names.Set(fmt.Sprint("kubernetes://x", i), struct{}{}))
			} else {
				moves = h.next(moves, names) // where it was before
			}
			synctest.Wait()
		}
		if got := h.Stats().Looked; got != many+changes/2 {
			t.Errorf("%d names were looked at, want %d", got, many+changes/2)
		}
		expect(t, "gets", moves.has())
		stays.Close()
		moves.Close()
		if s := h.Stats(); s.Objects+s.Views != 0 || len(h.accounts)+len(h.trouble) != 0 {
			t.Errorf("left behind: %+v %v", s, h.trouble)
		}
	})
}

// Of one identity no more names are looked at than its rate allows, however often it changes all of them; meanwhile
// others are answered at once, nothing piles up, and in the end it gets what it asked for last.
func TestGreedyNamesAreBounded(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		cert, key := newAuthority(t).issue(t, ecKey(t), time.Hour)
		h.put("a", Data{"tls.crt": cert, "tls.key": key})
		const lasts = 5 * time.Second
		lists := []Names{numbered("m", 4000), numbered("n", 4000)}
		greedy := h.open(who("greedy"))
		for begin, i := time.Now(), 0; time.Since(begin) < lasts; i++ {
			greedy = h.next(greedy, lists[i%2])
			if i%10 == 0 {
				other := h.open(who("other"), "kubernetes://a")
				expect(t, "another one gets", other.has(), "kubernetes://a")
				other.Close()
			}
			if views := h.Stats().Views; views > 3 {
				t.Fatalf("%d Views are held", views)
			}
			time.Sleep(20 * time.Millisecond)
		}
		most := uint64(maxLooked)*uint64((lasts+10*time.Second)/time.Second) + 4000
		if got := h.Stats().Looked; got > most || got < most/2 {
			t.Errorf("%d names were looked at in %v, want at most %d", got, lasts, most)
		}
		greedy = h.next(greedy, lists[0].Set("kubernetes://a", struct{}{}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect(t, "gets in the end", greedy.has(), "kubernetes://a")
		greedy.Close()
		if s := h.Stats(); s.Objects+s.Views != 0 || h.waiting.Len() != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestListsThatChange changes long lists of names, objects and rights at random: what a View has is at all times what
// there is of its names, and nothing is left when all have gone.
func TestListsThatChange(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, ecKey(t), 100000*time.Hour)
	full := Data{"tls.crt": cert, "tls.key": key}
	rapid.Check(t, func(rt *rapid.T) {
		r := &rights{of: map[string]bool{"x": true, "y": false}}
		inHouse(t, r, func(t *testing.T, h *house) {
			const most = 700
			there := map[int]bool{}
			lists := map[*view]Names{}
			var views []*view // in an order
			name := func(i int) string { return fmt.Sprint("kubernetes://n", i) }
			edited := func(names Names) Names {
				var edits []chunked.Edit[struct{}]
				at := rapid.IntRange(0, most-1).Draw(rt, "first")
				remove := rapid.Bool().Draw(rt, "remove")
				for i := range rapid.SampledFrom([]int{1, 1, 3, 300}).Draw(rt, "number") {
					edits = append(edits, chunked.Edit[struct{}]{Key: name((at + i) % most), Delete: remove})
				}
				return names.Apply(edits)
			}
			for range rapid.IntRange(1, 25).Draw(rt, "steps") {
				at := 0
				if len(views) > 0 {
					at = rapid.IntRange(0, len(views)-1).Draw(rt, "of")
				}
				switch what := rapid.SampledFrom([]string{"open", "fork", "move", "move", "twice", "put", "right",
					"close"}).Draw(rt, "what"); {
				case what == "right":
					r.set(rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "account"), rapid.Bool().Draw(rt, "may"))
					time.Sleep(allowedFor + 2*reviewEvery)
				case what == "put":
					for i := range rapid.SampledFrom([]int{1, 2, 600}).Draw(rt, "objects") {
						i = (i*7 + at) % most
						there[i] = !there[i]
						if o := (Object{Namespace: "shop", Name: fmt.Sprint("n", i)}); there[i] {
							h.files.Set(o, full)
						} else {
							h.files.Set(o, nil)
						}
					}
				case what == "open" || len(views) == 0:
					v := &view{}
					lists[v] = edited(edited(Names{}))
					v.View = h.Open(who(rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "account")), lists[v], nil,
						func() { v.changes++ })
					views = append(views, v)
				case what == "close":
					views[at].View.Close()
					delete(lists, views[at])
					views = slices.Delete(views, at, at+1)
				default:
					old, v := views[at], &view{}
					lists[v] = edited(lists[old])
					v.View = h.Open(old.who, lists[v], old.View, func() { v.changes++ })
					if what == "twice" { // before anybody has looked
						w := &view{}
						lists[w] = edited(lists[v])
						w.View = h.Open(old.who, lists[w], v.View, func() { w.changes++ })
						v.View.Close()
						delete(lists, v)
						v = w
					}
					if views = append(views, v); what != "fork" {
						old.View.Close()
						delete(lists, old)
						views = slices.Delete(views, at, at+1)
					}
				}
				synctest.Wait()
				for _, v := range views {
					var want []string
					for i := range most {
						if _, asks := lists[v].Get(name(i)); asks && there[i] && r.may(v.who.ServiceAccount) {
							want = append(want, name(i))
						}
					}
					slices.Sort(want)
					if got := v.has(); !slices.Equal(got, want) {
						rt.Fatalf("%v has %d, want %d: %q, %q", v.who, len(got), len(want), got[:min(3, len(got))],
							want[:min(3, len(want))])
					}
				}
			}
			for _, v := range views {
				v.Close()
			}
			for _, a := range h.accounts {
				if !a.idle() || len(a.blamed)+a.openings.Len()+len(a.others) > 0 {
					rt.Fatalf("left behind: %+v", a)
				}
			}
			if s := h.Stats(); s.Objects+s.Views+len(h.items) != 0 || len(h.trouble) != 0 {
				rt.Fatalf("left behind: %+v %v", s, h.trouble)
			}
		})
	})
}

// BenchmarkNames is what a client costs that changes a list of 20,000 names.
func BenchmarkNames(b *testing.B) {
	names, others := numbered("n", maxNames-300), numbered("m", maxNames-300)
	for _, c := range []struct {
		what string
		next func(i int) Names
	}{
		{"change=one", func(i int) Names { return names.Set(fmt.Sprint("kubernetes://x", i), struct{}{}) }},
		{"change=all", func(i int) Names { return []Names{names, others}[i%2] }},
	} {
		b.Run(c.what, func(b *testing.B) {
			s := New(Options{Now: time.Now, Every: time.Tick})
			s.rate = nil // what it costs, not how often that may be
			f := NewFiles(s)
			f.Ready()
			open := func(names Names, from *View) *View {
				v := s.Open(who("gateway"), names, from, func() {})
				for next, _ := s.next(); next != nil; next, _ = s.next() {
					s.see(next)
				}
				return v
			}
			v := open(names, nil)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				list := c.next(i)
				b.StartTimer()
				w := open(list, v)
				w.Resources()
				v.Close()
				v = w
			}
		})
	}
}
