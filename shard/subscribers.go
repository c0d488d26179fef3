package shard

import (
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// subscribers indexes the Cohorts of a worker by the names that they subscribe to. So a change finds whom it concerns
// by the names of resources, and looks at each subscription once, however many classes there are. Owned by the worker
// goroutine.
type subscribers struct {
	bySub  map[ads.Subscription]*subscription
	byName *chunked.Index[string, struct{}, *subscription]
	toAll  map[*subscription]struct{} // those with a wildcard
	// rest are the subscriptions for which the index has no room. Each is searched for a name.
	rest map[*subscription]struct{}
}

// maxIndexed bounds the names in the index of a worker, for clients may name whatever they like: it takes some 130
// bytes for each. A subscription that many have counts once.
const maxIndexed = 48 << 10

// subscription is one set of names, or the wildcard, with the Cohorts that subscribe to it.
type subscription struct {
	sub     ads.Subscription
	cohorts map[*cohort]struct{}
}

func newSubscribers() subscribers {
	return subscribers{bySub: map[ads.Subscription]*subscription{}, toAll: map[*subscription]struct{}{},
		rest:   map[*subscription]struct{}{},
		byName: chunked.NewIndex[string, struct{}, *subscription](func(name string, _ struct{}) string { return name })}
}

// add notes a new cohort.
func (s *subscribers) add(c *cohort) {
	of := s.bySub[c.sub]
	if of == nil {
		of = &subscription{sub: c.sub, cohorts: map[*cohort]struct{}{}}
		s.bySub[c.sub] = of
		switch names := c.sub.Names.Map(); {
		case c.sub.All:
			s.toAll[of] = struct{}{}
		case s.byName.Len()+s.byName.Missing(names) > maxIndexed:
			s.rest[of] = struct{}{}
		default:
			s.byName.Add(names, of)
		}
	}
	of.cohorts[c] = struct{}{}
}

// remove forgets a cohort.
func (s *subscribers) remove(c *cohort) {
	of := s.bySub[c.sub]
	if delete(of.cohorts, c); len(of.cohorts) > 0 {
		return
	}
	delete(s.bySub, c.sub)
	if _, ok := s.rest[of]; ok {
		delete(s.rest, of)
		return
	}
	delete(s.toAll, of)
	if !c.sub.All {
		s.byName.Remove(c.sub.Names.Map(), of)
	}
}

// to adds to found the subscriptions that have a name, but not the wildcards.
func (s *subscribers) to(name string, found map[*subscription]struct{}) {
	for of := range s.byName.Owners(name) {
		found[of] = struct{}{}
	}
	for of := range s.rest {
		if of.sub.Names.Contains(name) {
			found[of] = struct{}{}
		}
	}
}
