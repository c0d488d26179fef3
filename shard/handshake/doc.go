// Package handshake limits how many TLS handshakes run at the same time. When thousands of clients connect together,
// clients that are connected are still served, and the handshakes still finish in time.
//
//	kernel's backlog ──► waiting ──rounds──► under way ──► grpc
//	 when that is full    no goroutine       compute in turns; a slow client is given up
//
// An accepted connection waits as a file descriptor without a goroutine until a handshake in progress ends; its time
// limit has not started yet. Client addresses take turns in rounds, so many connections from one address delay another
// address by one connection only. If too many wait, the address with the most waiting connections loses its last one to
// an address with fewer; if all are from one address, further ones wait in the kernel. A connection whose client has
// hung up meanwhile is skipped.
//
// Among the handshakes in progress only a few compute at the same moment. One that waits for its client holds no turn.
// A client has ten seconds for its handshake, and five while other connections wait.
package handshake
