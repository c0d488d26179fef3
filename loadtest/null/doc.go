// Package null is the server that a control plane is measured against: a bare grpc-go server that sends the same,
// already built bytes to the same number of streams and reads what comes back. It is the limit that grpc-go allows.
//
//	clients ──► one reader for each stream: answers the first request of each type with given bytes, then counts
//	Broadcast(bytes) ──► SendMsg to each stream, one after the other
//
//	a control plane ──► Record: one client's responses ──► Recording ──► Serve in a process of its own (Spawn)
//
// It has no sessions, versions or credit. It must only be used with clients that read, for Broadcast blocks for one
// that does not.
package null
