// Package null is the server that a control plane is compared with: a bare grpc-go server that sends bytes built in
// advance to the same number of streams, and reads what comes back. It shows the limit that grpc-go sets.
//
//	clients ──► one reader for each stream: answers the first request of each type with given bytes, then counts
//	Broadcast(bytes) ──► SendMsg to each stream, one after the other
//
//	a control plane ──► Record: one client's responses ──► Recording ──► Serve in a process of its own (Spawn)
//
// It has no sessions, no versions and no flow control of its own. Use it only with clients that read, because Broadcast
// blocks on one that does not.
package null
