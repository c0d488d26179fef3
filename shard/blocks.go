package shard

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// blockKey is a run of resources in one kind of response. Clients of different classes have most runs in common, so that the response of
// one is assembled out of what was encoded for another.
type blockKey struct {
	chunk *chunked.Chunk[*encodecache.Entry]
	delta bool
}

// newBlocks makes the table of encoded runs. One lives while a response that holds it has not been sent to all.
func newBlocks() *encodecache.Table[blockKey, encodecache.Block] {
	return encodecache.NewTable(func(k blockKey) *encodecache.Block {
		entries := func(yield func(*encodecache.Entry) bool) {
			for _, it := range k.chunk.Items() {
				if !yield(it.Value) {
					return
				}
			}
		}
		if k.delta {
			return encodecache.NewDeltaBlock(entries)
		}
		return encodecache.NewSotWBlock(entries)
	})
}

const (
	// maxKept bounds the runs that a worker keeps: those of some hundred thousand resources.
	maxKept = 4096
	// leastKept are the resources of a run that is worth keeping: what a client has of its own nobody else asks for.
	leastKept = 8
)

// blocksOf are the encoded runs of a Batch that is all of a section. Those of clients that connect are kept for the next one, until no other
// has come for a grace or there is a new World.
func (w *worker) blocksOf(b *ads.Batch) (out []*encodecache.Block) {
	if w.kept == nil || len(w.kept) > maxKept {
		w.kept = map[blockKey]*encodecache.Block{}
	}
	for c := range b.Section.Chunks() {
		k := blockKey{c, b.Delta}
		block := w.kept[k]
		if block == nil {
			block = w.shards.blocks.Get(k)
			if len(c.Items()) >= leastKept {
				w.kept[k] = block
			}
		}
		out = append(out, block)
	}
	return out
}
