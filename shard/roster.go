package shard

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// roster says which clients a worker has, by their classes and subscriptions. Owned by the worker goroutine.
type roster struct {
	// Immutable after newRoster.
	types *xdstype.Table
	stats *stats

	groups      map[*classGroup]struct{}
	byClass     map[*classes.Class]*classGroup
	subscribers subscribers
	parted      bool // the last member of a class has left, in this round
}

// classGroup is the members of one class on this shard.
type classGroup struct {
	class   *classes.Class
	desired *desired
	members map[*client]struct{}
	cohorts map[ads.Subscription]*cohort
}

// cohort are the members of a class group that subscribe to the same endpoints.
type cohort struct {
	sub     ads.Subscription
	members map[*client]struct{}
}

func newRoster(types *xdstype.Table, s *stats) roster {
	return roster{types: types, stats: s, groups: map[*classGroup]struct{}{},
		byClass: map[*classes.Class]*classGroup{}, subscribers: newSubscribers()}
}

func newClassGroup(c *classes.Class) *classGroup {
	return &classGroup{class: c, members: map[*client]struct{}{}, cohorts: map[ads.Subscription]*cohort{}}
}

// add takes in a class group.
func (r *roster) add(c *classGroup) {
	r.byClass[c.class] = c
	r.groups[c] = struct{}{}
	r.stats.classes.Add(1)
}

// join puts a client that is in no class group into one.
func (r *roster) join(m *client, c *classGroup) {
	m.group = c
	c.members[m] = struct{}{}
}

// leave takes a client out of its class group. If it was the last one it takes the class group away, and returns it.
func (r *roster) leave(m *client) (gone *classGroup) {
	if m.group == nil {
		return nil
	}
	r.leaveCohort(m)
	c := m.group
	m.group = nil
	delete(c.members, m)
	if len(c.members) > 0 {
		return nil
	}
	delete(r.groups, c)
	delete(r.byClass, c.class)
	r.stats.classes.Add(-1)
	r.parted = true
	return c
}

func (r *roster) leaveCohort(m *client) {
	if m.cohort == nil {
		return
	}
	delete(m.cohort.members, m)
	if len(m.cohort.members) == 0 {
		delete(m.group.cohorts, m.cohort.sub)
		r.subscribers.remove(m.cohort)
		r.stats.cohorts.Add(-1)
	}
	m.cohort = nil
}

// joinCohort puts a client into the Cohort of its subscription.
func (r *roster) joinCohort(m *client) {
	if m.group == nil {
		return
	}
	sub := r.liveSubscription(m)
	if m.cohort != nil && m.cohort.sub == sub {
		return
	}
	r.leaveCohort(m)
	c := m.group.cohorts[sub]
	if c == nil {
		c = &cohort{sub: sub, members: map[*client]struct{}{}}
		m.group.cohorts[sub] = c
		r.subscribers.add(c)
		r.stats.cohorts.Add(1)
	}
	c.members[m] = struct{}{}
	m.cohort = c
}

// liveSubscription returns what a client subscribes to of the type that is made from endpoints.
func (r *roster) liveSubscription(m *client) ads.Subscription {
	typ := r.types.FromEndpoints()
	if typ == xdstype.None {
		return ads.Subscription{}
	}
	return m.session.Subscription(typ)
}
