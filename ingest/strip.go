package ingest

import (
	"hash/maphash"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Stripper strips objects of all but what the Store keeps of them. It remembers some of the texts that it saw last:
// each object is decoded into texts of its own, and most of them are those of its neighbours. The zero value is ready;
// it is not for use by several goroutines.
type Stripper struct {
	seed maphash.Seed
	seen []string // by hash; those that came last
}

// remembered is how many texts a Stripper remembers.
const remembered = 1 << 10

// same returns s, in the memory of an equal text that came before.
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

// Strip makes what the Store keeps of an object of a kind: a *Pod of a Pod, a *Slice of an EndpointSlice, the object
// itself of all others and of what is stripped already. The Store does it to every object; a source that holds many
// before it hands them over does it first.
func (k *Kind) Strip(s *Stripper, object any) any {
	if k == nil || k.strip == nil {
		return object
	}
	return k.strip(s, object)
}

// stripped returns a Kind.strip that strips objects of type O.
func stripped[O, S any](strip func(*Stripper, *O) *S) func(*Stripper, any) any {
	return func(s *Stripper, object any) any {
		if o, ok := object.(*O); ok && o != nil {
			return strip(s, o)
		}
		return object
	}
}

// sameStripped returns a Kind.same of objects that strip makes.
func sameStripped[S any](equal func(*S, *S) bool) func(before, next any) bool {
	return func(before, next any) bool {
		b, was := before.(*S)
		n, is := next.(*S)
		return was && is && equal(n, b)
	}
}
