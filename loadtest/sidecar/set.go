package sidecar

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// set is a set of resources of one type, at most one of each name, sorted by number. Equal sets are the same pointer.
// Immutable.
type set struct {
	list []*Resource
	sum  uint64 // of the ids

	naming sync.Once
	named  *names // what the resources refer to; computed on first use
}

// change is the effect of a response on a set.
type change struct {
	next  *set
	same  []*Resource // the resources that the set already had
	fresh []*Resource
	gone  int // number of resources of the set that are not in next
	marks []int
	// lost are marks that the set carried and next does not.
	lost []int
}

// replace returns the set of the resources got, in place of prev. It sorts got.
func (t *Table) replace(prev *set, got []*Resource) change {
	got = sorted(got)
	var c change
	sum, _, matched := c.compare(prev, got)
	c.gone = len(prev.list) - matched
	if c.gone > 0 {
		for _, r := range prev.list {
			if len(r.Marks) > 0 && !contains(got, r.number) {
				c.lost = append(c.lost, r.Marks...)
			}
		}
	}
	c.next = t.set(sum, func() []*Resource { return slices.Clone(got) })
	return c
}

// update returns prev with the resources got, and without the removed ones. It sorts got.
func (t *Table) update(prev *set, got []*Resource, removed []uint32) change {
	got = sorted(got)
	var c change
	sum, succeeded, _ := c.compare(prev, got)
	sum += prev.sum - succeeded
	old := prev.list
	var left []uint32
	for _, number := range removed {
		if i, ok := at(old, number); ok && !contains(got, number) && !slices.Contains(left, number) {
			sum -= old[i].id
			c.lost = append(c.lost, old[i].Marks...)
			left = append(left, number)
			c.gone++
		}
	}
	c.next = t.set(sum, func() []*Resource { return merge(old, got, left) })
	return c
}

// compare separates new from unchanged resources. It returns the sum of what came, and the sum and the number of those
// of prev that are replaced.
func (c *change) compare(prev *set, got []*Resource) (sum, succeeded uint64, matched int) {
	old := prev.list
	for _, r := range got {
		sum += r.id
		if len(old) > 0 && old[0].number < r.number {
			i, _ := at(old, r.number)
			old = old[i:]
		}
		if len(old) == 0 || old[0].number != r.number {
			c.fresh = append(c.fresh, r)
			c.marks = append(c.marks, r.Marks...)
			continue
		}
		matched++
		succeeded += old[0].id
		if had := old[0]; had.body == r.body {
			c.same = append(c.same, r)
		} else {
			c.fresh = append(c.fresh, r)
			c.marks = without(c.marks, r.Marks, had.Marks)
			c.lost = without(c.lost, had.Marks, r.Marks)
		}
		old = old[1:]
	}
	return sum, succeeded, matched
}

// without appends to out the numbers in a that are not in b.
func without(out, a, b []int) []int {
	for _, n := range a {
		if !slices.Contains(b, n) {
			out = append(out, n)
		}
	}
	return out
}

// merge returns old with the resources got in place of those with the same numbers, and without those in left.
func merge(old, got []*Resource, left []uint32) []*Resource {
	out := make([]*Resource, 0, len(old)+len(got))
	for _, r := range old {
		for len(got) > 0 && got[0].number < r.number {
			out = append(out, got[0])
			got = got[1:]
		}
		switch {
		case len(got) > 0 && got[0].number == r.number:
			out = append(out, got[0])
			got = got[1:]
		case !slices.Contains(left, r.number):
			out = append(out, r)
		}
	}
	return append(out, got...)
}

// set returns the set with a sum.
func (t *Table) set(sum uint64, list func() []*Resource) *set {
	if sum == 0 {
		return t.none
	}
	return intern(t, t.sets, sum, func() *set { return &set{list: list(), sum: sum} })
}

// at finds a number in sorted resources.
func at(list []*Resource, number uint32) (int, bool) {
	return slices.BinarySearchFunc(list, number, func(r *Resource, n uint32) int { return cmp.Compare(r.number, n) })
}

func contains(list []*Resource, number uint32) bool {
	_, ok := at(list, number)
	return ok
}

// sorted sorts by number, in place. Of several resources with the same name the last one is kept.
func sorted(list []*Resource) []*Resource {
	byNumber := func(a, b *Resource) int { return cmp.Compare(a.number, b.number) }
	if !slices.IsSortedFunc(list, byNumber) {
		slices.SortStableFunc(list, byNumber)
	}
	out := list[:0]
	for i, r := range list {
		if i+1 == len(list) || list[i+1].number != r.number {
			out = append(out, r)
		}
	}
	return out
}

// only returns the subset of s whose names are in n.
func (t *Table) only(s *set, n *names) *set {
	keep := func(r *Resource) bool {
		_, ok := slices.BinarySearch(n.numbers, r.number)
		return ok
	}
	sum := uint64(0)
	for _, r := range s.list {
		if keep(r) {
			sum += r.id
		}
	}
	return t.set(sum, func() []*Resource {
		return slices.DeleteFunc(slices.Clone(s.list), func(r *Resource) bool { return !keep(r) })
	})
}

// names is a list of names of one type that clients subscribe to. Equal lists are the same pointer. Immutable.
type names struct {
	list    []string
	numbers []uint32 // sorted
	encoded []byte   // encoded as in requests
}

// uses returns the names to which the resources of a set refer; nil if there are none.
func (t *Table) uses(s *set) *names {
	s.naming.Do(func() {
		var list []string
		seen := map[uint32]bool{}
		for _, r := range s.list {
			for i, u := range r.uses {
				if !seen[r.used[i]] {
					seen[r.used[i]] = true
					list = append(list, u)
				}
			}
		}
		if len(list) > 0 {
			s.named = t.names(usedBy(s.list[0].Type), list)
		}
	})
	return s.named
}

// names returns the list of those names of a type, without duplicates.
func (t *Table) names(of xdstype.Type, list []string) *names {
	var h maphash.Hash
	h.SetSeed(t.seed)
	_ = h.WriteByte(byte(of))
	var length [4]byte
	for _, name := range list {
		binary.LittleEndian.PutUint32(length[:], uint32(len(name)))
		_, _ = h.Write(length[:])
		_, _ = h.WriteString(name)
	}
	return intern(t, t.lists, h.Sum64(), func() *names {
		n := &names{list: list}
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, name := range list {
			n.numbers = append(n.numbers, t.number(of, name))
			n.encoded = wire.AppendName(n.encoded, name)
		}
		slices.Sort(n.numbers)
		return n
	})
}
