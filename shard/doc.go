// Package shard runs the Sessions of all streams on a few worker goroutines.
//
//	streams ──Attach, Receive, Detach──►┐             ┌─► Session ─► Effects ─► Response ─► Stream.Send
//	planner ──Assigned, Advanced───────►├─ slots of ──┤   (shard/ads)          (encodecache)
//	planner ──EndpointsChanged─────────►┘  a worker   └─► one Response for all members at the same state
//
// A worker owns its proxies' Sessions and never blocks: not on sockets, not on a slow proxy. What comes in is merged:
// requests into one place per stream (only the stream's reader waits, so that a flood delays only its sender),
// ResourceSets into one slot per class where the newest wins, endpoint changes into one set of services. The endpoint
// slot is looked at after every Cohort, so the endpoint lane never waits for the other. The state of a worker is
// bounded by its proxies, not by events.
//
// A proxy is placed when the planner has told its class: on the shard that the class hashes to, or the next one while
// that has 256 members of the class already. It stays there for the stream's life, whatever classes it moves to.
// Nothing is answered before that: the planner tells a class only when it has everything, so it alone guards that
// nobody is answered from half a world.
package shard
