package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// origin is what a Key of something that is sent must be.
type origin interface {
	comparable
	value.Origin
}

// checked is a Table of what is sent: each value is checked once, when it is made. One that fails, or whose making
// panics, is left out alone: in its place is one that is empty. What is wrong is noted in faults.
type checked[K origin, V any] struct {
	*encodecache.Table[K, V]
	faults *faults
}

// Get is the value of k, made now if nobody holds it yet.
func (t checked[K, V]) Get(k K) *V {
	v := t.Table.Get(k)
	if t.faults.doubtful.Load() > 0 {
		t.faults.confirm(k)
	}
	return v
}

// newChecked makes a Table whose values are made from what encode gives for a Key; no bytes are left out. noun says in
// reports what a value is.
func newChecked[K origin, V any](f *faults, noun string, encode func(K) ([]byte, []gen.Fault),
	make func(K, []byte) *V) checked[K, V] {
	return checked[K, V]{faults: f, Table: encodecache.NewTable(func(k K) (v *V) {
		defer func() {
			if p := recover(); p != nil {
				v = make(k, nil)
				f.panicked(k, noun, v, p)
			}
		}()
		if f.hook != nil {
			f.hook(k)
		}
		b, list := encode(k)
		if v = make(k, b); len(list) > 0 {
			f.add(k, noun, v, list)
		}
		return v
	})}
}

// fragments makes a Table of parts of resources. One that is left out has no bytes.
func fragments[K origin](f *faults, noun string, encode func(K) ([]byte, []gen.Fault)) checked[K,
	encodecache.Fragment] {
	return newChecked(f, noun, encode, func(_ K, b []byte) *encodecache.Fragment { return encodecache.NewFragment(b) })
}

// leaves makes a Table of resources that are called as their Keys' part. One that is left out is absent.
func leaves[K origin](f *faults, noun, typeURL string, encode func(K) ([]byte, []gen.Fault)) checked[K,
	encodecache.Entry] {
	return newChecked(f, noun, encode, func(k K, b []byte) *encodecache.Entry {
		if len(b) == 0 {
			return absent(typeURL, k)
		}
		return encodecache.NewLeaf(typeURL, k.Part(), encodecache.NewFragment(b))
	})
}

// absent is what stands for a resource that is left out.
func absent(typeURL string, k value.Origin) *encodecache.Entry {
	name := ""
	guarded(func() { name = k.Part() })
	return encodecache.NewAbsent(typeURL, name)
}

// stencils makes a Table of stencils. One that is left out is empty.
func stencils[K origin](f *faults, noun string, holes []encodecache.Hole,
	encode func(K) ([]byte, []gen.Fault)) checked[K, encodecache.Stencil] {
	return newChecked(f, noun, encode,
		func(_ K, b []byte) *encodecache.Stencil { return encodecache.NewStencil(b, holes) })
}

// putEntry puts a resource, or takes it away where it is left out.
func putEntry(e *edit[*encodecache.Entry], r *encodecache.Entry) {
	if r.Absent() {
		e.put(r.Name(), nil)
	} else {
		e.put(r.Name(), r)
	}
}
