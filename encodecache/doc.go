// Package encodecache turns Keys into encoded bytes, once for the whole fleet.
//
//	Key ──Table──► Fragment (bytes, hash)          one encoding per Key, ever
//	header + Fragments ──► Entry (name, version)   one resource
//	Fragments ──► Run                              joined once for all Entries that have them
//	Entry ──► EncodedAny (pieces of its Any, length)    gathered; only small pieces are copied
//	EncodedAnys ──► Response (SotW or Delta)            assembled once, sent to many streams
//
// A Fragment's bytes are a run of complete protobuf fields, so that a message is the concatenation of its Fragments: a
// RouteConfiguration is its header's Fragment and one Fragment for each virtual host. Versions are content: 128 bits of
// SHA-256 over the Fragments' hashes.
//
// A Table holds its values by weak pointers: a Fragment lives as long as a plan holds an Entry made of it, and then
// leaves the Table by itself. Nothing is invalidated and there is no size to tune. Everything here is safe for
// concurrent use; a Table fills each Key once (single flight) and callers that want the same Key wait for the first.
//
// A Response's buffers are views of memory that is never written again and never returned to a pool; whoever sends it
// may free them, which does nothing.
//
// A Fragment or an Entry tells from which Key it was made (Origin): what a Key says of itself, such as the objects that
// it comes from, can so be asked of anything that is sent.
//
// The package imports nothing of pilotd and knows no message type, only the numbers of the fields that a response has.
package encodecache
