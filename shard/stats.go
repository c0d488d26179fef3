package shard

import "sync/atomic"

// stats are what a worker counts. Other goroutines read them.
type stats struct {
	classes, cohorts, members atomic.Int64
	connecting                atomic.Int64
	sent, assembled, rounds   atomic.Uint64
	lanes                     [2]atomic.Uint64
}

// Stats are the counts of one shard.
type Stats struct {
	// Classes, Cohorts and Members are those that the shard has now.
	Classes, Cohorts, Members int
	// Inbox, ResourceSets and Services are what has come and is not taken yet: members with mail, classes with a new
	// ResourceSet, services with new endpoints.
	Inbox, ResourceSets, Services int
	// Connecting are the members that wait for their turn to be answered for the first time, or for the first time of a
	// type.
	Connecting int
	// Sent counts responses, once for each client that they go to. Assembled counts those that were assembled: on average
	// Sent/Assembled clients share one.
	Sent, Assembled uint64
	// Rounds counts the worker's rounds; ConfigTakes and EndpointTakes how often it took something from each lane.
	Rounds, ConfigTakes, EndpointTakes uint64
}

// Stats returns the counts of each shard.
func (s *Shards) Stats() []Stats {
	out := make([]Stats, len(s.workers))
	for i, w := range s.workers {
		f := &w.stats
		out[i] = Stats{
			Classes: int(f.classes.Load()), Cohorts: int(f.cohorts.Load()), Members: int(f.members.Load()),
			Connecting: int(f.connecting.Load()), Sent: f.sent.Load(), Assembled: f.assembled.Load(),
			Rounds: f.rounds.Load(), ConfigTakes: f.lanes[ConfigLane].Load(),
			EndpointTakes: f.lanes[EndpointLane].Load(),
		}
		w.slots.mu.Lock()
		out[i].Inbox, out[i].ResourceSets, out[i].Services = len(w.slots.inbox), len(w.slots.sets), len(w.slots.services)
		w.slots.mu.Unlock()
	}
	return out
}

// Counts is how many classes with members, encoded runs of resources, and nodes whose versions are not believed all
// shards have. Runs leave after a garbage collection.
type Counts struct{ Classes, Runs, Doubts int }

// Counts counts what the shards have now.
func (s *Shards) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Classes: len(s.spreads), Runs: s.blocks.Len(), Doubts: len(s.doubts.byNode)}
}

// Planning returns how many proxies wait until the planner may be asked for them.
func (s *Shards) Planning() int { return s.gate.Len() }

// Streams returns the number of streams that are attached, placed or not.
func (s *Shards) Streams() int { return s.clients.Size() }
