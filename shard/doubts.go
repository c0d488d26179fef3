package shard

import (
	"hash/maphash"

	"github.com/pilotd/pilotd/xdstype"
)

// maxDoubts bounds how many nodes are remembered. They take some two megabytes.
const maxDoubts = 1 << 16

// doubts are the types of which nobody believes the versions that a node reports, also after it has left and comes
// back. They keep a hash of the node's id, with a secret key. Guarded by the Shards' mu.
type doubts struct {
	seed   maphash.Seed
	byNode map[uint64]xdstype.Set
	order  []uint64 // those of byNode, oldest first; may name nodes that are believed again
}

func newDoubts() doubts { return doubts{seed: maphash.MakeSeed(), byNode: map[uint64]xdstype.Set{}} }

func (d *doubts) of(node string) xdstype.Set { return d.byNode[maphash.String(d.seed, node)] }

func (d *doubts) add(node string, t xdstype.Type) {
	key := maphash.String(d.seed, node)
	if _, ok := d.byNode[key]; !ok {
		d.order = append(d.order, key)
		for len(d.order) > maxDoubts {
			delete(d.byNode, d.order[0])
			d.order = d.order[1:]
		}
	}
	d.byNode[key] = d.byNode[key].With(t)
}

func (d *doubts) remove(node string, t xdstype.Type) {
	key := maphash.String(d.seed, node)
	left := d.byNode[key].Without(t)
	if left != 0 {
		d.byNode[key] = left
		return
	}
	delete(d.byNode, key)
}
