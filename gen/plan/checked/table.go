package checked

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Key is the Key of something that is sent. It says which objects it comes from.
type Key interface {
	comparable
	value.Origin
}

// Table is an encodecache.Table of what is sent: each value is checked once, when it is made. One that fails its check,
// or whose making panics, is left out alone: an empty value stands for it. Faults has what is wrong with it.
type Table[K Key, V any] struct {
	*encodecache.Table[K, V]
	faults *Faults
}

// Get returns the value of k, made now if nobody holds it yet.
func (t Table[K, V]) Get(k K) *V {
	v := t.Table.Get(k)
	if t.faults.doubtful.Load() > 0 {
		t.faults.confirm(k)
	}
	return v
}

// New makes a Table whose values are made from what encode gives for a Key; a value that is made of no bytes is left
// out. noun says in reports what a value is.
func New[K Key, V any](f *Faults, noun string, encode func(K) ([]byte, []gen.Fault),
	value func(K, []byte) *V) Table[K, V] {
	return Table[K, V]{faults: f, Table: encodecache.NewTable(func(k K) (v *V) {
		defer func() {
			if p := recover(); p != nil {
				v = value(k, nil)
				f.panicked(k, noun, v, p)
			}
		}()
		if f.hook != nil {
			f.hook(k)
		}
		b, list := encode(k)
		if v = value(k, b); len(list) > 0 {
			f.add(k, noun, v, list)
		}
		return v
	})}
}

// Fragments makes a Table of parts of resources. One that is left out has no bytes.
func Fragments[K Key](f *Faults, noun string, encode func(K) ([]byte, []gen.Fault)) Table[K,
	encodecache.Fragment] {
	return New(f, noun, encode, func(_ K, b []byte) *encodecache.Fragment { return encodecache.NewFragment(b) })
}

// Leaves makes a Table of resources that have the name of their Key's part. One that is left out is absent.
func Leaves[K Key](f *Faults, noun, typeURL string, encode func(K) ([]byte, []gen.Fault)) Table[K,
	encodecache.Entry] {
	return New(f, noun, encode, func(k K, b []byte) *encodecache.Entry {
		if len(b) == 0 {
			return absent(typeURL, k)
		}
		return encodecache.NewLeaf(typeURL, k.Part(), encodecache.NewFragment(b))
	})
}

// absent returns what stands for a resource that is left out.
func absent(typeURL string, k value.Origin) *encodecache.Entry {
	name := ""
	guarded(func() { name = k.Part() })
	return encodecache.NewAbsent(typeURL, name)
}

// Templates makes a Table of templates. One that is left out is empty.
func Templates[K Key](f *Faults, noun string, placeholders []encodecache.Placeholder,
	encode func(K) ([]byte, []gen.Fault)) Table[K, encodecache.Template] {
	return New(f, noun, encode,
		func(_ K, b []byte) *encodecache.Template { return encodecache.NewTemplate(b, placeholders) })
}
