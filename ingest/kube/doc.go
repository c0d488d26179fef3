// Package kube is the source that reads objects from a Kubernetes API server. It is the only package that imports
// client-go.
//
//	API server ══► reflector, one per kind ─► collector: keeps the fields that are used
//	     ║                                        └─► outbox: the last event per object (a map, not a queue)
//	     ║                                                └─► deliver ─► Sink: one Apply at a time
//	     ╚═══════► CRDs (metadata only) ─► start and end the kinds of Istio
//
// A reflector lists and watches; it is told by a stream (WatchList) where the server has that, in protobuf for
// Kubernetes's own kinds. There is no informer and no second cache: what the server holds is known to the collector by
// name only, so that a list after an outage tells what is gone. Objects are cut down to the used fields before they are
// kept by anybody.
//
// What comes while the Store is busy waits in the outbox, one event per object, the latest. Memory is bounded by
// objects, never by events. A server that is away or slow delays and loses nothing: what was known stays in force,
// every kind retries on its own, and the list after it says what changed.
//
// Istio's kinds are read when their CRD is there, in the newest version that the server serves, into the types of
// networking/v1; a CRD that is removed takes its objects with it. An object of theirs that does not decode is reported
// and keeps its last good version, and its neighbours do not notice.
//
// Synced is told once, after the events of every kind that was present when the source started. Services,
// EndpointSlices, Pods and the mesh configuration are waited for as long as it takes. Kinds that pilotd can do without
// (nodes, namespaces, CRDs, Istio's kinds) are waited for no longer than a grace after the others have come: a role may
// lack the right to read them, or their API group may answer nonsense. That is reported, and they are tried again for
// ever; their objects come in when they can be read. With the rights in one namespace alone, what a role of that
// namespace cannot have is not waited for at all. Where CRDs cannot be listed, each of Istio's kinds is asked for
// directly.
//
// What fails is contained: an object whose reading panics, or that does not decode, is refused alone; a kind whose
// reading panics begins again; a request that is not answered, or whose answer does not end, is given up and made
// again.
package kube
