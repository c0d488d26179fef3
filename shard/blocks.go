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

// blocksOf are the encoded runs of a Batch that is all of a section.
func (s *Shards) blocksOf(b *ads.Batch) (out []*encodecache.Block) {
	for c := range b.Section.Chunks() {
		out = append(out, s.blocks.Get(blockKey{c, b.Delta}))
	}
	return out
}
