// Package handshake admits connections that begin with TLS by what that costs, so that thousands that come at once
// neither keep those that are connected from being served, nor each other from ever finishing.
//
//	kernel's backlog ──► waiting ──rounds──► under way ──► grpc
//	 when that is full    no goroutine       compute in turns; a slow client is given up
//
// A connection that is accepted waits as a file descriptor alone, until one of those whose handshakes are under way is
// done; waiting costs it nothing of its time. Addresses go in rounds, so a crowd at one delays others by one of it. If
// too many wait, the address with most of them loses its last one to an address that has fewer; when all are of one
// address, they wait in the kernel. One whose client has hung up meanwhile is passed over.
//
// Of the handshakes under way a few compute at the same moment, and only while they do: one that waits for its client
// holds up nobody. A client has ten seconds, and five while others wait.
package handshake
