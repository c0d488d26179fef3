package shard

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// endpoints are the endpoints of now, as one worker knows them, and what is joined from them. Owned by the worker
// goroutine.
type endpoints struct {
	// Immutable after newEndpoints.
	shards *Shards

	table     *snapshot.EndpointTable // nil until the first client comes
	log       changeLog
	joins     joinedTable
	resources resourcesTable
}

func newEndpoints(s *Shards) endpoints {
	return endpoints{shards: s, joins: newJoinedTable(), resources: resourcesTable{}}
}

// learn notes that the endpoints of services have changed, without telling any member.
func (e *endpoints) learn(t *snapshot.EndpointTable, services map[value.ServiceKey]struct{}) {
	if e.table == nil || t.Revision > e.table.Revision {
		e.table = t
	}
	if len(services) > 0 {
		e.log.add(services)
	}
}

// entry returns the resource of an assignment for the newest endpoints.
func (e *endpoints) entry(a *classes.Assignment) *encodecache.Entry {
	return e.shards.opts.join.entry(a, e.table)
}

// tryEntry calls entry. If that panics it returns had: the assignment stays what it was.
func (e *endpoints) tryEntry(a *classes.Assignment, had *encodecache.Entry) (r *encodecache.Entry) {
	if !e.shards.opts.contain("the endpoints of "+a.Name, func() { r = e.entry(a) }) {
		return had
	}
	return r
}
