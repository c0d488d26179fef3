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

// set is resources of one type, one of a name, sorted by number. Sets of the same resources are the same set.
// Immutable.
type set struct {
	list []*Resource
	sum  uint64 // of the ids

	naming sync.Once
	named  *names // what the resources use, once that was asked for
}

// change is what a response makes of a set.
type change struct {
	next  *set
	same  []*Resource // the set had exactly these
	fresh []*Resource
	gone  int // how many of the set are not in next
	marks []int
	// lost are marks that the set had and next has not.
	lost []int
}

// replace returns the set of what came, in place of prev. It sorts what came.
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

// update returns prev with what came, and without what was removed. It sorts what came.
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

// compare tells what is new of what came from what is not; it returns the sum of what came, and the sum and number of
// those of prev that have a successor there.
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

// without adds to out what is in a and not in b.
func without(out, a, b []int) []int {
	for _, n := range a {
		if !slices.Contains(b, n) {
			out = append(out, n)
		}
	}
	return out
}

// merge returns old with got in place of what has the same number, and without what has left.
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

// set returns the set of a sum.
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

// sorted sorts by number, in place; of several of a name the last counts.
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

// only returns what of the set is in n.
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

// names is a list of names of one type that clients subscribe to. Lists of the same names are the same list. Immutable.
type names struct {
	list    []string
	numbers []uint32 // sorted
	encoded []byte   // as requests carry them
}

// uses returns the list of names that the resources of a set use; nil if there are none.
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

// names returns the list of different names of a type.
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
