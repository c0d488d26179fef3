package ingest

import (
	"hash/maphash"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Stripper reduces objects to what the Store keeps of them. It shares equal strings: each decoded object has strings of
// its own, and most are equal to those of objects before it, so the Stripper remembers some of the last ones. The zero
// value is ready to use; not safe for concurrent use.
type Stripper struct {
	seed maphash.Seed
	seen []string // recent strings, by hash
}

// remembered is the number of strings that a Stripper remembers.
const remembered = 1 << 10

// same returns s, or an equal string that it has seen before.
func (t *Stripper) same(s string) string {
	if t.seen == nil {
		t.seed, t.seen = maphash.MakeSeed(), make([]string, remembered)
	}
	at := &t.seen[maphash.String(t.seed, s)%remembered]
	if *at != s {
		*at = s
	}
	return *at
}

func (t *Stripper) labels(all map[string]string) value.Labels {
	if len(all) == 0 {
		return nil
	}
	out := make(value.Labels, len(all))
	for k, v := range all {
		out[t.same(k)] = t.same(v)
	}
	return out
}

// Strip returns what the Store keeps of an object of this kind: a *Pod for a Pod, a *Slice for an EndpointSlice, and
// the object itself for other kinds and for objects that are stripped already. The Store strips every object. A source
// that holds many objects before it hands them over should strip them first, to save memory.
func (k *Kind) Strip(s *Stripper, object any) any {
	if k == nil || k.strip == nil {
		return object
	}
	return k.strip(s, object)
}

// stripped makes a Kind.strip from a function for objects of type O.
func stripped[O, S any](strip func(*Stripper, *O) *S) func(*Stripper, any) any {
	return func(s *Stripper, object any) any {
		if o, ok := object.(*O); ok && o != nil {
			return strip(s, o)
		}
		return object
	}
}

// sameStripped makes a Kind.same for the stripped type S.
func sameStripped[S any](equal func(*S, *S) bool) func(before, next any) bool {
	return func(before, next any) bool {
		b, was := before.(*S)
		n, is := next.(*S)
		return was && is && equal(n, b)
	}
}
