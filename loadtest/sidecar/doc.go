// Package sidecar simulates the xDS side of Envoys, thousands in one process.
//
//	connection ─► wire.Stream ─► parser: resources, each looked up by its hash ─► Client.Take ─► requests ─► wire.Stream
//	                                 │ new bytes are scanned once for all            └─► Receipt ─► Fleet's counts and Observe
//	                                 ▼
//	                               Table: every resource that any client has got
//
// A Client decides purely, as Envoy does: it asks for clusters; for the endpoints of those that say EDS; holds the ACK of the clusters until
// these have come; then asks for listeners, and for the routes that they name. It keeps which resources it has, as pointers into the Table,
// and so knows a push that tells it nothing. A response is never held as a whole and never decoded: one resource at a time is hashed,
// and bytes that some client has seen before cost a look-up.
//
// A Fleet runs Clients, each on a connection of its own in a goroutine of its own. What it calls (Options.Observe) must not block.
package sidecar
