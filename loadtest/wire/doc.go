// Package wire speaks gRPC's HTTP/2 for one stream of the aggregated discovery service on a connection of its own, as cheaply as can be, so
// that thousands fit into one process and what is measured is the server.
//
//	New ──► Open ──► Send … ──► Run: bytes of responses ──► data ──► Send …
//
// One goroutine does it all. The receive window never closes; the server's flow control is observed: what does not fit its window waits.
package wire
