// Package sidecar simulates the xDS side of proxies, tens of thousands in one process: sidecars and gateways, which are
// Envoys, and proxyless gRPC clients.
//
//	link: a connection ─► wire.Conn ─► session: parser ─► Client.Take ─► requests ─► wire.Conn
//	  └ dials, backs off, stalls,           │ each resource looked up by   └─► Receipt ─► Fleet's counts and Observe
//	    slows down, leaves                  ▼ its hash, scanned once for all
//	                                      Table: every resource, set and list of names that some client has
//
// A Client decides purely, as Envoy or gRPC does: which requests follow a response, and what is said on a new stream.
// It keeps what it has as a pointer to a set in the Table, and so knows a push that tells it nothing. Clients with
// equal resources share their sets; what no client has any more leaves the Table by itself. A response is never held as
// a whole and never decoded: one resource at a time is hashed, of a big one each block, and bytes that some client has
// now cost a look-up.
//
// Package bench/fleet has clients that do none of this: they ACK what comes, and are for measuring a server alone. Both
// encode requests and speak HTTP/2 by package wire.
//
// A Fleet runs Clients. A link runs one connection in a goroutine of its own, and all that its members do on a stream
// happens there; what the Fleet's methods change is guarded. What a Fleet calls (Options.Observe) must not block.
package sidecar
