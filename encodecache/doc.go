// Package encodecache turns Keys into encoded bytes, once for the whole fleet.
//
//	Key ──Table──► Fragment (bytes, hash)          one encoding per Key, ever
//	header + Fragments ──► Entry (name, version)   one resource
//	Fragments ──► Run                              joined once for all Entries that contain them
//	Entry ──► EncodedAny (pieces of its Any, length)    gathered; only small pieces are copied
//	EncodedAnys ──► Response (SotW or Delta)            assembled once, sent to many streams
//
// The bytes of a Fragment are complete protobuf fields, so a message is the concatenation of its Fragments: a
// RouteConfiguration is the Fragment of its header and one Fragment for each virtual host. Versions are content hashes:
// 128 bits of SHA-256 over the Fragments' hashes.
//
// A Table refers to its values by weak pointers: a Fragment exists for as long as some Entry in a plan contains it, and
// then the garbage collector removes it from the Table. Nothing has to be invalidated, and there is no size to tune.
// Everything here is safe for concurrent use. A Table makes the value of each Key only once; callers that want the same
// Key at the same time wait for the first one.
//
// The buffers of a Response refer to memory that is never written again and never returned to a pool. A sender may free
// them, which does nothing.
//
// A Fragment or an Entry remembers the Key it was made from (Origin), so the objects that a Key names as its sources
// can be found for anything that is sent.
//
// The package imports nothing of pilotd and knows no message type, only the numbers of a response's fields.
package encodecache
