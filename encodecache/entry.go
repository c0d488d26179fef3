package encodecache

import (
	"crypto/sha256"
	"encoding/base64"
	"iter"
	"sync/atomic"
)

// Entry is one resource: what a proxy calls by type and name. Immutable but for its EncodedAny, which is made on first
// use and can be dropped.
//
// Its content is a sequence of Fragments: the header's first, then those of its parts in order. An Entry of one
// Fragment is a leaf.
type Entry struct {
	// Immutable after its constructor.
	name    string
	typeURL string
	version Sum
	size    int       // bytes of the message
	leaf    *Fragment // the whole message, or nil
	body    Body      // nil in a leaf
	inRuns  bool      // the body is gathered out of its runs
	absent  bool
	from    origin

	// frame is made on first use; a leaf has none, for its two pieces are at hand.
	frame atomic.Pointer[EncodedAny]
}

// NewEntry makes the resource name of type typeURL (with its "type.googleapis.com/" prefix) from its content.
func NewEntry(typeURL, name string, c Content) *Entry {
	return &Entry{typeURL: typeURL, name: name, version: c.Version, size: c.Size, body: &sequence{parts: c.Parts}}
}

// Content is what the message of a composite is made of.
type Content struct {
	// Version is the hash that VersionOf gives for Parts, or one that the owner derives from theirs by another fixed
	// rule.
	Version Sum
	// Size is the length of the message in bytes.
	Size int
	// Parts must yield the same Fragments each time. It is not read where there is a Body.
	Parts iter.Seq[*Fragment]
}

// Body is what the message of a composite is put together from. Its methods yield the same each time.
type Body interface {
	// Fragments yields the parts of the message, in order.
	Fragments(yield func(*Fragment) bool)
	// Runs yields the same bytes out of what several resources have in common, in the same order.
	Runs(yield func(*Run) bool)
}

// sequence is a Body that is given as its parts, with the runs that have the same bytes, if there are any.
type sequence struct {
	parts iter.Seq[*Fragment]
	runs  iter.Seq[*Run]
}

func (s *sequence) Fragments(yield func(*Fragment) bool) { s.parts(yield) }

func (s *sequence) Runs(yield func(*Run) bool) { s.runs(yield) }

// Composed returns the resource name of type typeURL that is gathered out of the runs of a Body, whose version and size
// are given. It is a value, so that a Body can have its Entry within itself, in one piece of memory: it must be put
// where it is to stay before anybody else has it.
func Composed(typeURL, name string, c Content, body Body) Entry {
	return Entry{typeURL: typeURL, name: name, version: c.Version, size: c.Size, body: body, inRuns: true}
}

// NewLeaf returns the resource whose whole message is f.
func NewLeaf(typeURL, name string, f *Fragment) *Entry {
	return &Entry{typeURL: typeURL, name: name, version: f.sum, size: len(f.bytes), leaf: f}
}

// NewComposite returns the resource whose message is header followed by parts, which must yield the same Fragments each
// time; it walks them once for version and size.
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

// NewAbsent stands for the resource of that name where there is none: what would have been one is left out. It has no
// content, and is never sent.
func NewAbsent(typeURL, name string) *Entry {
	return &Entry{typeURL: typeURL, name: name, leaf: NewFragment(nil), absent: true}
}

// Absent reports whether the Entry only stands for a resource that is left out.
func (e *Entry) Absent() bool { return e.absent }

// VersionOf returns the content version of the message that parts make up, and its size in bytes.
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

// Origin returns the Key that a Table made the Entry from. It is nil for an Entry that was put together elsewhere: its
// Parts then have origins of their own.
func (e *Entry) Origin() any { return e.from.key() }

// Parts yields the Fragments whose bytes make up the message, in order. The one of a leaf has the origin of the Entry.
func (e *Entry) Parts() iter.Seq[*Fragment] {
	if e.leaf != nil {
		return func(yield func(*Fragment) bool) { yield(e.leaf) }
	}
	return e.body.Fragments
}

// Message returns the encoded message in one piece, for dumps: it is copied.
func (e *Entry) Message() []byte {
	out := make([]byte, 0, e.Size())
	for f := range e.Parts() {
		out = append(out, f.bytes...)
	}
	return out
}

// Sum returns the content version.
func (e *Entry) Sum() Sum { return e.version }

// Version returns the content version as the protocol carries it: 22 characters.
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
