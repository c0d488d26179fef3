// Package sidecar simulates the xDS side of proxies, tens of thousands in one process: sidecars and gateways, which
// behave like Envoy, and proxyless gRPC clients.
//
//	link: a connection ─► wire.Conn ─► session: parser ─► Client.Take ─► requests ─► wire.Conn
//	  └ dials, backs off, stalls,           │ each resource looked up by   └─► Receipt ─► Fleet's counts and Observe
//	    slows down, leaves                  ▼ its hash, scanned once for all
//	                                      Table: every resource, set and list of names that some client has
//
// A Client only decides, as Envoy or gRPC would: which requests follow a response, and what to send on a new stream.
// What it has is a pointer to a set in the Table, so it recognizes a push without news. Clients with equal resources
// share their sets, and what no client has any more leaves the Table by itself. A response is never stored as a whole
// and never decoded: resources are hashed one at a time, big ones block by block, and bytes that some client already
// has cost only a look-up.
//
// Package bench/fleet has clients that do none of this: they ACK every response, for measuring a server alone. Both
// encode requests and speak HTTP/2 through package wire.
//
// A Fleet runs Clients. A link runs one connection in a goroutine of its own, in which everything happens that its
// members do on a stream; what the Fleet's methods change is guarded by locks. Options.Observe, which a Fleet calls,
// must not block.
package sidecar
