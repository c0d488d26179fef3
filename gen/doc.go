// Package gen makes Envoy configuration: pure functions from a Key to a message, one file per noun.
//
// A Key is a comparable struct of scalars and pointers to values; it is all that its function may read. Equal Keys
// therefore give equal bytes, and a Key is what a table of package encodecache finds a resource by. Functions are
// total: what a user may get wrong was refused by ingest. The package reads no Snapshot, clock, environment or global
// (invariant I3).
//
// Every message is encoded by Marshal or MarshalSorted, also inside an Any: content versions are hashes of the bytes,
// so the encoding of one content must never vary. Which of the two a noun takes is fixed: MarshalSorted, as soon as it
// may hold a map of more than one entry.
package gen
