// Package proxy decides what a client is, once, when it connects.
//
//	Node of the first request ─┐
//	                           ├─ Accept ─► Proxy, or an error that ends the stream
//	Peer: what is proven of it ┘
//
// Accept is the door: nothing behind it reads the Node, and what Accept does not take into the Proxy has no influence
// on what the client is sent. All that the Proxy keeps is bounded, so that a client costs little before it has proven
// who it is. The filters that a client was built with are kept as verdicts (value.Filters) and not as the list that it
// reports.
//
// Metadata and Extensions name what Accept reads of a Node, so that a receiver can pass over the rest undecoded.
//
// The package is pure: it has no state, blocks nowhere, and any goroutine may call it. A Proxy is immutable.
package proxy
