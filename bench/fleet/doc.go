// Package fleet is a number of xDS clients for benchmarks, as cheap as clients can be, so that what is measured is the
// server.
//
//	Start ──► client 0 ─ subscribe type 0 ─► answer ─ ACK, subscribe type 1 ─► … then ACK whatever comes
//	          client 1 …                                      └─► Fleet counts; Await waits for a count
//
// A client has a connection of its own and one goroutine (loadtest/wire). It reads no
// resource; it finds version, type and nonce of a response without keeping it, and answers with an ACK as large as a
// real client's: a State-of-the-World ACK repeats every name. It observes the server's flow control.
package fleet
