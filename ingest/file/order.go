package file

import (
	"cmp"
	"slices"
)

const (
	// newest is an upper bound of all ages, in seconds since the epoch: earlier than any cluster's first object.
	newest = 1_300_000_000
	// apart is the distance between the ages of neighbours, as long as there is room: files may come between them
	// later.
	apart = 1 << 16
)

// order gives files ages that increase in path order. A file keeps its age while others come and go.
type order struct {
	files []*content // in path order
}

func (o *order) find(path string) (int, bool) {
	return slices.BinarySearchFunc(o.files, path,
		func(c *content, path string) int { return cmp.Compare(c.path, path) })
}

// add adds a file, and reports whether others got new ages to make room.
func (o *order) add(c *content) (moved bool) {
	i, _ := o.find(c.path)
	o.files = slices.Insert(o.files, i, c)
	before, after := int64(0), int64(newest)
	if i > 0 {
		before = o.files[i-1].age
	}
	if i+1 < len(o.files) {
		after = o.files[i+1].age
	}
	if after-before < 2 {
		o.spread()
		return true
	}
	c.age = before + min(apart, (after-before)/2)
	return false
}

func (o *order) remove(c *content) {
	if i, ok := o.find(c.path); ok {
		o.files = slices.Delete(o.files, i, i+1)
	}
}

// spread gives all files new ages, and leaves half of the range to files that come last.
func (o *order) spread() {
	step := min(apart, newest/2/int64(len(o.files)))
	for i, c := range o.files {
		c.age = int64(i+1) * step
	}
}
