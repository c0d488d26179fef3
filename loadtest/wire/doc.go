// Package wire speaks gRPC's HTTP/2 for streams of the aggregated discovery service, as cheaply as can be, so that tens
// of thousands fit into one process and what is measured is the server.
//
//	Endpoint.Dial ──► NewConn ──► Open ──► Stream.Send …        (any goroutine; Flush sends)
//	                     └──────► Run: frames ──► Handler.Data ──► Stream.Send …
//	                              (Run flushes when it has handled all that has come)
//
// One goroutine runs a connection: what it calls handlers with is a part of a buffer that it takes from a pool only
// when there is something to read, so that an idle connection holds none. The window of a stream is as large as that of
// Istio's agent, and opens as what came is taken; the server's flow control is observed: what does not fit its window
// waits. Header compression has no table in either direction, so nothing of it is kept.
package wire
