// Package shard runs the Sessions of all streams on a few worker goroutines.
//
//	streams ──Attach, Receive, Detach──►┐             ┌─► Session ─► Effects ─► Response ─► Stream.Send
//	planner ──Assigned, Advanced───────►├─ slots of ──┤   (shard/ads)          (encodecache)
//	planner ──EndpointsChanged─────────►┘  a worker   └─► one Response for all members at the same state
//
// A worker owns its proxies' Sessions and never blocks: not on sockets, not on a slow proxy. What comes in is merged,
// never queued: each stream has room for one request that is not handled yet (its reader waits, so that a flood delays
// only its sender), each class for one ResourceSet (the newest wins), and endpoint changes are one set of services. A
// worker looks at the endpoint changes after every Cohort, so that they never wait for configuration. The state of a
// worker is bounded by its proxies, not by events.
//
// A proxy gets its shard when the planner has told its class: the shard that the class hashes to, or the next one if
// that has 256 members of the class already. It stays there as long as its stream lasts, whatever classes it moves to.
// Nothing is answered before that, and the planner tells a class only when every source has synced: so no proxy is
// answered from an incomplete mesh.
package shard
