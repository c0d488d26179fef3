package shard

import (
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// subscribers are the cohorts of a worker by what they subscribe to, so that a change is held against each subscription
// once, however many classes there are, and finds those that it concerns by the names of resources. Owned by the worker
// goroutine.
type subscribers struct {
	bySub  map[ads.Subscription]*subscription
	byName *chunked.Index[string, struct{}, *subscription]
	toAll  map[*subscription]struct{} // those with a wildcard
}

// subscription is one set of names, or the wildcard, and who subscribes to it.
type subscription struct {
	sub     ads.Subscription
	cohorts map[*cohort]struct{}
}

func newSubscribers() subscribers {
	return subscribers{bySub: map[ads.Subscription]*subscription{}, toAll: map[*subscription]struct{}{},
		byName: chunked.NewIndex[string, struct{}, *subscription](func(name string, _ struct{}) string { return name })}
}

// add notes a new cohort.
func (s *subscribers) add(c *cohort) {
	of := s.bySub[c.sub]
	if of == nil {
		of = &subscription{sub: c.sub, cohorts: map[*cohort]struct{}{}}
		s.bySub[c.sub] = of
		if c.sub.All {
			s.toAll[of] = struct{}{}
		} else {
			s.byName.Add(c.sub.Names.Map(), of)
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
	delete(s.toAll, of)
	if !c.sub.All {
		s.byName.Remove(c.sub.Names.Map(), of)
	}
}
