package sidecar

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// set is resources of one type, one of a name, sorted by number. Immutable.
type set []*Resource

// change is what a response makes of a set.
type change struct {
	next  set
	same  []*Resource // the set had exactly these
	fresh []*Resource
	gone  int // how many of the set are not in next
}

// replace is the set of what came, in place of prev.
func replace(prev set, got []*Resource) change {
	next := set(slices.Clone(got))
	next.sort()
	c := change{next: next}
	i := 0
	for _, r := range next {
		for i < len(prev) && prev[i].number < r.number {
			i++
			c.gone++
		}
		if i < len(prev) && prev[i].number == r.number {
			c.compare(prev[i], r)
			i++
			continue
		}
		c.fresh = append(c.fresh, r)
	}
	c.gone += len(prev) - i
	return c
}

// update is prev with what came, and without what was removed.
func update(prev set, got []*Resource, removed []string) change {
	come := set(slices.Clone(got))
	come.sort()
	c := change{next: make(set, 0, len(prev)+len(come))}
	i := 0
	for _, r := range prev {
		for i < len(come) && come[i].number < r.number {
			c.fresh = append(c.fresh, come[i])
			c.next = append(c.next, come[i])
			i++
		}
		switch {
		case i < len(come) && come[i].number == r.number:
			c.compare(r, come[i])
			c.next = append(c.next, come[i])
			i++
		case slices.Contains(removed, r.Name):
			c.gone++
		default:
			c.next = append(c.next, r)
		}
	}
	c.fresh = append(c.fresh, come[i:]...)
	c.next = append(c.next, come[i:]...)
	return c
}

func (c *change) compare(had, got *Resource) {
	if had.body == got.body {
		c.same = append(c.same, got)
	} else {
		c.fresh = append(c.fresh, got)
	}
}

// sort sorts by number; of several of a name the last counts.
func (s *set) sort() {
	byNumber := func(a, b *Resource) int { return cmp.Compare(a.number, b.number) }
	if !slices.IsSortedFunc(*s, byNumber) {
		slices.SortStableFunc(*s, byNumber)
	}
	out := (*s)[:0]
	for i, r := range *s {
		if i+1 == len(*s) || (*s)[i+1].number != r.number {
			out = append(out, r)
		}
	}
	*s = out
}

// only is what of the set is in n.
func (s set) only(n *names) set {
	return slices.DeleteFunc(slices.Clone(s), func(r *Resource) bool { return !n.has[r.Name] })
}

// names is a list of names that clients subscribe to. Immutable.
type names struct {
	list    []string
	has     map[string]bool
	encoded []byte // as requests carry them
}

const requestNames, requestUnsubscribe = 3, 4

// uses is the list of names that the resources of a set use; nil if there are none. Equal sets have the same one.
func (t *Table) uses(s set) *names {
	var h maphash.Hash
	h.SetSeed(t.seed)
	var length [4]byte
	any := false
	for _, r := range s {
		for _, u := range r.uses {
			any = true
			binary.LittleEndian.PutUint32(length[:], uint32(len(u)))
			_, _ = h.Write(length[:])
			_, _ = h.WriteString(u)
		}
	}
	if !any {
		return nil
	}
	t.mu.RLock()
	n := t.lists[h.Sum64()]
	t.mu.RUnlock()
	if n != nil {
		return n
	}
	n = &names{has: map[string]bool{}}
	for _, r := range s {
		for _, u := range r.uses {
			if !n.has[u] {
				n.has[u] = true
				n.list = append(n.list, u)
				n.encoded = appendString(n.encoded, requestNames, u)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.lists[h.Sum64()]; known != nil {
		return known
	}
	t.lists[h.Sum64()] = n
	return n
}

func appendString(b []byte, num protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}
