// Package grpcstream is the aggregated discovery service: it turns gRPC streams into requests for the shards, and
// responses of the shards into bytes on streams. It does not look at what the requests and responses are about.
//
//	client ──► reader (the handler) ── scan ──► Backend.Attach, Receive, Detach      may block: only this client waits
//	client ◄── grpc ◄─┬─ worker: Stream.Send, while grpc takes it without blocking
//	                  └─ writer goroutine, while there is a queue                    one of the two at any time
//
// Requests are scanned, not decoded: see scanner. Responses are not copied: see codec and encodecache.Response.
//
// # Who sends
//
// SendMsg blocks once a stream holds 64 KiB that grpc has not written. A worker must never block, so a stream counts
// what grpc has been given and has not written: each message carries a buffer whose release tells that grpc is done
// with it. grpc returns a message's bytes to the stream's quota before it releases its buffers, so the count is never
// below what the quota lacks, and a SendMsg while the count is below 64 KiB does not block. What the client says (an
// ACK) plays no part: a client that answers what it has not read stops nobody.
//
// Send holds the stream's mutex, and with it sends by itself if no writer runs, the count allows it and the message has
// few pieces. Otherwise it queues, and starts a writer if none runs. The writer takes one response after the other out
// of the queue, and stops under the mutex when it finds none. So there is one sender at any time, responses keep their
// order, and whoever sends under the mutex does not wait there: Send and Close never block.
//
// A stream ends once: by its client, by Close, by a limit, by Shutdown, or because its client did not read for too
// long. From then on nothing is sent. The handler returns when the writer is gone, so that no goroutine outlives its
// stream, and only then tells the Backend.
package grpcstream
