// Package wire implements the part of gRPC over HTTP/2 that streams of the aggregated discovery service need, as
// cheaply as possible, so that tens of thousands fit into one process and a measurement shows the server's cost.
//
//	Endpoint.Dial ──► NewConn ──► Open ──► Stream.Send …        (any goroutine; Flush sends)
//	                     └──────► Run: frames ──► Handler.Data ──► Stream.Send …
//	                              (Run flushes when it has handled everything that arrived)
//
// One goroutine runs a connection. It passes handlers parts of a buffer, which it takes from a pool only when there is
// something to read, so that an idle connection holds none. The window of a stream is as large as that of Istio's
// agent, and opens again as bytes are handled. Requests obey the server's flow control: what does not fit into its
// window waits. Header compression uses no dynamic table in either direction, so no state of it is kept.
package wire
