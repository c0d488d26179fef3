package shard

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Whoever subscribes and leaves, and whatever ResourceSets come and go, a change of endpoints finds the subscriptions
// that a look at each of them finds.
func TestSubscribersAgainstLooking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := ads.NewNamesTable()
		w := &worker{endpoints: newEndpoints(nil), roster: newRoster(nil, nil)}
		cohorts, sets := map[int]*cohort{}, map[int]*joined{}
		assignments := map[string]*classes.Assignment{}
		draw := func(what string) (list []string) {
			for range rapid.IntRange(0, 90).Draw(t, what) {
				list = append(list, fmt.Sprint("name-", rapid.IntRange(0, 150).Draw(t, "name")))
			}
			return list
		}
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			i := rapid.IntRange(0, 3).Draw(t, "which")
			if rapid.Bool().Draw(t, "subscription") {
				if c := cohorts[i]; c != nil {
					w.roster.subscribers.remove(c)
					delete(cohorts, i)
				} else {
					cohorts[i] = &cohort{sub: ads.Subscription{Names: names.Of(draw("names")),
						All: rapid.IntRange(0, 5).Draw(t, "all") == 0}}
					w.roster.subscribers.add(cohorts[i])
				}
			} else if j := sets[i]; j != nil {
				w.endpoints.joins.release(j)
				delete(sets, i)
			} else {
				set := &classes.ResourceSet{}
				for _, name := range draw("assignments") {
					if assignments[name] == nil {
						assignments[name] = &classes.Assignment{Name: name, Service: serviceOf(name[:len(name)-1])}
					}
					set.Assignments = set.Assignments.Set(name, assignments[name])
				}
				sets[i] = &joined{set: set, identity: uint64(i)}
				w.endpoints.joins.retain(sets[i])
			}
			service := serviceOf(fmt.Sprint("name-", rapid.IntRange(0, 15).Draw(t, "service")))
			checkSubscribers(t, w, service, sets, cohorts)
		}
	})
}

func checkSubscribers(t *rapid.T, w *worker, service value.ServiceKey, sets map[int]*joined, cohorts map[int]*cohort) {
	want := map[ads.Subscription]bool{}
	for _, j := range sets {
		for name, a := range j.set.Assignments.All() {
			for _, c := range cohorts {
				if a.Service == service && c.sub.Has(name) {
					want[c.sub] = true
				}
			}
		}
	}
	got := map[ads.Subscription]bool{}
	for s := range w.subscribersTo(map[value.ServiceKey]struct{}{service: {}}) {
		if got[s.sub] {
			t.Fatal("a subscription is found twice")
		}
		got[s.sub] = true
	}
	if !maps.Equal(got, want) {
		t.Fatalf("found %v, want %v", got, want)
	}
}

// BenchmarkSubscribers finds the subscribers of one service among thousands of subscriptions that differ by one name.
func BenchmarkSubscribers(b *testing.B) {
	for _, subscriptions := range []int{100, 10_000} {
		b.Run(fmt.Sprint(subscriptions), func(b *testing.B) {
			names := ads.NewNamesTable()
			w := &worker{endpoints: newEndpoints(nil), roster: newRoster(nil, nil)}
			set, common := &classes.ResourceSet{}, []string{}
			for i := range 100 {
				common = append(common, fmt.Sprint("outbound|80||s", i))
			}
			base := names.Of(common)
			for i := range subscriptions {
				own := fmt.Sprint("outbound|90||own", i)
				w.roster.subscribers.add(&cohort{sub: ads.Subscription{Names: names.Edit(base, []string{own}, nil)}})
				set.Assignments = set.Assignments.Set(own, &classes.Assignment{Name: own, Service: serviceOf(own)})
			}
			w.endpoints.joins.retain(&joined{set: set})
			one := map[value.ServiceKey]struct{}{serviceOf("outbound|90||own7"): {}}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for range w.subscribersTo(one) {
					n++
				}
				if n != 1 {
					b.Fatal(n)
				}
			}
		})
	}
}

// A subscription that the index has no room for is found all the same, and leaves nothing when it goes; what the index
// kept for many names is given back.
func TestSubscriptionsBeyondTheIndex(t *testing.T) {
	names, s := ads.NewNamesTable(), newSubscribers()
	list := func(of string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(of, "-", i))
		}
		return out
	}
	small := &cohort{sub: ads.Subscription{Names: names.Of(list("small", 10))}}
	large := &cohort{sub: ads.Subscription{Names: names.Of(list("large", maxIndexed))}}
	s.add(small)
	s.add(large)
	if len(s.rest) != 1 || s.byName.Len() != 10 {
		t.Fatalf("%d names are in the index, and %d subscriptions beside it, want 10 and 1", s.byName.Len(), len(s.rest))
	}
	for name, want := range map[string]*cohort{"small-3": small, "large-3": large} {
		found := map[*subscription]struct{}{}
		s.to(name, found)
		if _, ok := found[s.bySub[want.sub]]; !ok || len(found) != 1 {
			t.Errorf("%s: found %d subscriptions, want its one", name, len(found))
		}
	}
	s.remove(large)
	if len(s.rest)+len(s.bySub) != 1 {
		t.Error("a subscription that is gone is remembered")
	}
}
