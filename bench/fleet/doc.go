// Package fleet is a number of xDS clients for benchmarks, as cheap as clients can be, so that what is measured is the
// server.
//
//	Start ──► client 0 ─ subscribe type 0 ─► answer ─ ACK, subscribe type 1 ─► … then ACK whatever comes
//	          client 1 …                                      └─► Fleet counts; Await waits for a count
//
// A client has a connection of its own and one goroutine (loadtest/wire, which also encodes its requests). It reads no
// resource; it finds version, type and nonce of a response without keeping it, and answers with an ACK as large as a
// real client's: a State-of-the-World ACK repeats every name. It observes the server's flow control.
//
// There are other simulated clients, in loadtest/sidecar. Those are proxies: they subscribe to what the resources that
// they get name, wait for endpoints before they ACK clusters, and count what was useless, for which they must look at
// each byte. Here the subscriptions are given beforehand and every response is ACKed, so that a client costs the same
// however the server is changed, and its processor time is small beside the server's.
package fleet
