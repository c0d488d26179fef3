package encodecache

import (
	"crypto/sha256"
	"encoding/base64"
	"iter"
	"sync/atomic"
)

// Entry is one resource, which a proxy identifies by type and name. Immutable, except for its EncodedAny, which is made
// on first use and can be dropped.
//
// The content is a sequence of Fragments: the header's first, then those of the parts in order. An Entry of one
// Fragment is a leaf.
type Entry struct {
	// Immutable after its constructor.
	name    string
	typeURL string
	version Sum
	size    int       // length of the message in bytes
	leaf    *Fragment // the whole message, in a leaf; else nil
	body    Body      // nil in a leaf
	inRuns  bool      // gathering uses the runs of body
	absent  bool
	from    origin

	// frame is made on first use. A leaf has none, because its two pieces are always at hand.
	frame atomic.Pointer[EncodedAny]
}

// NewEntry returns the resource called name of type typeURL (with its "type.googleapis.com/" prefix) with content c.
func NewEntry(typeURL, name string, c Content) *Entry {
	return &Entry{typeURL: typeURL, name: name, version: c.Version, size: c.Size, body: &sequence{parts: c.Parts}}
}

// Content describes the message of a composite.
type Content struct {
	// Version is the hash that VersionOf returns for Parts, or one that the owner derives from their hashes by another
	// fixed rule.
	Version Sum
	// Size is the length of the message in bytes.
	Size int
	// Parts must yield the same Fragments each time. It is not used if there is a Body.
	Parts iter.Seq[*Fragment]
}

// Body provides the content of a composite. Its methods must yield the same each time.
type Body interface {
	// Fragments yields the parts of the message, in order.
	Fragments(yield func(*Fragment) bool)
	// Runs yields the same bytes in the same order, as runs that several resources share.
	Runs(yield func(*Run) bool)
}

// sequence is a Body made of a sequence of parts, and of runs with the same bytes, if there are any.
type sequence struct {
	parts iter.Seq[*Fragment]
	runs  iter.Seq[*Run]
}

func (s *sequence) Fragments(yield func(*Fragment) bool) { s.parts(yield) }

func (s *sequence) Runs(yield func(*Run) bool) { s.runs(yield) }

// Composed returns the resource called name of type typeURL, whose bytes are gathered from the runs of body; c has its
// version and size. The result is not a pointer, so that an owner can have its Entry in one piece of memory with its
// Body. The owner must store it in its final place before any other code sees it.
func Composed(typeURL, name string, c Content, body Body) Entry {
	return Entry{typeURL: typeURL, name: name, version: c.Version, size: c.Size, body: body, inRuns: true}
}

// NewLeaf returns the resource whose whole message is f.
func NewLeaf(typeURL, name string, f *Fragment) *Entry {
	return &Entry{typeURL: typeURL, name: name, version: f.sum, size: len(f.bytes), leaf: f}
}

// NewComposite returns the resource whose message is header followed by parts, which must yield the same Fragments each
// time. It iterates over them once, to compute version and size.
func NewComposite(typeURL, name string, header *Fragment, parts iter.Seq[*Fragment]) *Entry {
	all := func(yield func(*Fragment) bool) {
		if !yield(header) {
			return
		}
		parts(yield)
	}
	version, size := VersionOf(all)
	return NewEntry(typeURL, name, Content{Version: version, Size: size, Parts: all})
}

// NewAbsent returns a placeholder for a resource that is left out. It has no content and is never sent.
func NewAbsent(typeURL, name string) *Entry {
	return &Entry{typeURL: typeURL, name: name, leaf: NewFragment(nil), absent: true}
}

// Absent reports whether the Entry is such a placeholder.
func (e *Entry) Absent() bool { return e.absent }

// VersionOf returns the content version of the message that consists of parts, and its size in bytes.
func VersionOf(parts iter.Seq[*Fragment]) (version Sum, size int) {
	version = Join(func(yield func(Sum) bool) {
		for f := range parts {
			size += len(f.bytes)
			if !yield(f.sum) {
				return
			}
		}
	})
	return version, size
}

// Name returns the resource's name.
func (e *Entry) Name() string { return e.name }

// TypeURL returns the type of the resource.
func (e *Entry) TypeURL() string { return e.typeURL }

// Size returns the length of the encoded message, without its Any.
func (e *Entry) Size() int { return e.size }

// Origin returns the Key from which a Table made the Entry; nil if it was composed elsewhere, in which case its Parts
// have origins of their own.
func (e *Entry) Origin() any { return e.from.key() }

// Parts yields the Fragments of the message in order. The Fragment of a leaf has the same origin as the Entry.
func (e *Entry) Parts() iter.Seq[*Fragment] {
	if e.leaf != nil {
		return func(yield func(*Fragment) bool) { yield(e.leaf) }
	}
	return e.body.Fragments
}

// Message returns a copy of the encoded message in one piece, for dumps.
func (e *Entry) Message() []byte {
	out := make([]byte, 0, e.Size())
	for f := range e.Parts() {
		out = append(out, f.bytes...)
	}
	return out
}

// Sum returns the content version.
func (e *Entry) Sum() Sum { return e.version }

// Version returns the content version as xDS sends it: 22 characters.
func (e *Entry) Version() string { return e.Sum().String() }

// versionLen is the length of Version.
const versionLen = 22

// String returns s in URL-safe base64 without padding.
func (s Sum) String() string {
	var b [versionLen]byte
	s.encode(b[:])
	return string(b[:])
}

func (s Sum) encode(to []byte) { base64.RawURLEncoding.Encode(to, s[:]) }

// Join returns the hash of a sequence of hashes.
func Join(sums iter.Seq[Sum]) Sum {
	h := sha256.New()
	for s := range sums {
		h.Write(s[:])
	}
	var out [sha256.Size]byte
	return Sum(h.Sum(out[:0])[:16])
}
