package checked

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/value"
)

// ObjectsOf returns the objects that a Fragment was made from: those that say most of it first, the mesh's
// configuration last. There are none for what says nothing of any object.
func ObjectsOf(f *encodecache.Fragment) []value.ObjectKey {
	if o, ok := f.Origin().(value.Origin); ok {
		return o.Objects()
	}
	return nil
}

// PartOf returns the stable name of a Fragment among those of its resource, by which an older and a newer one of the
// same part find each other; empty if it has none.
func PartOf(f *encodecache.Fragment) string {
	if o, ok := f.Origin().(value.Origin); ok {
		return o.Part()
	}
	return ""
}
