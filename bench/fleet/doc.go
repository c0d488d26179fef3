// Package fleet runs xDS clients for benchmarks, as cheap as clients can be, so that benchmarks measure the server.
//
//	Start ──► client 0 ─ subscribe type 0 ─► answer ─ ACK, subscribe type 1 ─► … then ACK every response
//	          client 1 …                                      └─► Fleet counts; Await waits for a count
//
// A client has a connection of its own and one goroutine (loadtest/wire, which also encodes its requests). It decodes
// no resource: it finds version, type and nonce of a response without storing it, and sends an ACK as large as a real
// client's (a State-of-the-World ACK repeats every name). It obeys the server's flow control.
//
// The simulated clients in loadtest/sidecar are different: they behave like proxies, subscribe to the names in the
// resources that they get, wait for endpoints before they ACK clusters, and count useless resources, for which they
// must look at each byte. Here the subscriptions are given in advance and every response is ACKed, so the cost of a
// client does not depend on the server, and its processor time is small beside the server's.
package fleet
