package ads

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// emptyKey names the empty resource of a type and a name.
type emptyKey struct {
	row  *xdstype.Row
	name string
}

// empty returns the resource that a sidecar gets for a name that does not exist: the row makes it. The name is any
// bytes that a client sent.
func (b *Differ) empty(row *xdstype.Row, name string) *encodecache.Entry {
	key := emptyKey{row, name}
	e, ok := b.empties[key]
	if !ok {
		e = encodecache.NewLeaf(row.URL, name, encodecache.NewFragment(row.Empty(name)))
		b.empties[key] = e
	}
	return e
}
