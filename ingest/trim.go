package ingest

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Trimmer cuts objects down to what the Store keeps of them. It remembers some of the texts that it saw last: each
// object is decoded into texts of its own, and most of them are those of its neighbours. The zero value is ready; it is
// not for use by several goroutines.
type Trimmer struct {
	seed maphash.Seed
	seen []string // by hash; those that came last
}

// remembered is how many texts a Trimmer remembers.
const remembered = 1 << 10

// Trim is what the Store keeps of an object: a *Pod of a Pod, a *Slice of an EndpointSlice, the object itself of all
// others and of what is trimmed already. The Store does it to every object; a source that holds many before it hands
// them over does it first.
func (t *Trimmer) Trim(object any) any {
	switch o := object.(type) {
	case *corev1.Pod:
		if o != nil {
			return t.pod(o)
		}
	case *discovery.EndpointSlice:
		if o != nil {
			return t.slice(o)
		}
	}
	return object
}

// same is s, in the memory of an equal text that came before.
func (t *Trimmer) same(s string) string {
	if t.seen == nil {
		t.seed, t.seen = maphash.MakeSeed(), make([]string, remembered)
	}
	at := &t.seen[maphash.String(t.seed, s)%remembered]
	if *at != s {
		*at = s
	}
	return *at
}

func (t *Trimmer) labels(all map[string]string) value.Labels {
	if len(all) == 0 {
		return nil
	}
	out := make(value.Labels, len(all))
	for k, v := range all {
		out[t.same(k)] = t.same(v)
	}
	return out
}

// same reports whether the used fields of two trimmed objects are equal.
func same(before, next any) bool {
	switch o := next.(type) {
	case *Pod:
		b, ok := before.(*Pod)
		return ok && o.equal(b)
	case *Slice:
		b, ok := before.(*Slice)
		return ok && o.equal(b)
	}
	return false
}
