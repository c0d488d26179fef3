package encodecache

import (
	"crypto/sha256"
	"encoding/base64"
	"iter"
	"sync/atomic"
)

// Entry is one resource: what a proxy calls by type and name. Immutable but for its Frame, which is made on first use and can be dropped.
//
// Its content is a sequence of Fragments: the header's first, then those of its parts in order. An Entry of one Fragment is a leaf.
type Entry struct {
	// Immutable after NewEntry.
	name    string
	typeURL string
	version Sum
	size    int // bytes of the message
	parts   iter.Seq[*Fragment]

	frame atomic.Pointer[Frame]
}

// NewEntry makes the resource name of type typeURL (with its "type.googleapis.com/" prefix) from parts, which must yield the same
// Fragments each time. version is the hash that VersionOf gives for them, or one that the owner derives from theirs by the same rule.
func NewEntry(typeURL, name string, version Sum, size int, parts iter.Seq[*Fragment]) *Entry {
	return &Entry{typeURL: typeURL, name: name, version: version, size: size, parts: parts}
}

// NewLeaf is the resource whose whole message is f.
func NewLeaf(typeURL, name string, f *Fragment) *Entry {
	return NewEntry(typeURL, name, f.sum, len(f.bytes), func(yield func(*Fragment) bool) { yield(f) })
}

// Name is the resource's name.
func (e *Entry) Name() string { return e.name }

// TypeURL is the type of the resource.
func (e *Entry) TypeURL() string { return e.typeURL }

// Sum is the content version.
func (e *Entry) Sum() Sum { return e.version }

// Version is the content version as the protocol carries it: 22 characters.
func (e *Entry) Version() string { return e.version.String() }

// String is s in URL-safe base64 without padding.
func (s Sum) String() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// Join is the hash of a sequence of hashes.
func Join(sums iter.Seq[Sum]) Sum {
	h := sha256.New()
	for s := range sums {
		h.Write(s[:])
	}
	var out [sha256.Size]byte
	return Sum(h.Sum(out[:0])[:16])
}

// Frame is the encoded Any of the resource as ready pieces.
type Frame struct {
	// Pieces are to be sent in this order; read only. Small neighbours are joined, so that few are below some 500 bytes.
	Pieces [][]byte
	// Len is the sum of their lengths.
	Len int
}
