package shard

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// blockKey names a run of resources in one variant of the protocol. Clients of different classes have most runs in
// common, so that the response for one is assembled from what was encoded for another.
type blockKey struct {
	chunk *chunked.Chunk[*encodecache.Entry]
	delta bool
}

// newBlocks makes the table of encoded runs. A run lives while a response that has it is on its way, and while it is
// kept.
func newBlocks() *encodecache.Table[blockKey, encodecache.Block] {
	return encodecache.NewTable(func(k blockKey) *encodecache.Block {
		entries := slices.Values(k.chunk.Values())
		if k.delta {
			return encodecache.NewDeltaBlock(entries)
		}
		return encodecache.NewSotWBlock(entries)
	})
}

// leastKept is how many resources a run must have to be worth keeping. Shorter ones are what a client has for itself,
// and nobody else asks for these.
const leastKept = 8

// blocksOf returns the encoded runs of a Batch that is all of a section. Runs for clients that connect are kept for
// those that come next, as far as memory allows, until no other client has come for a while or there is a new
// ResourceSet.
func (s *sender) blocksOf(b *ads.Batch) (out []*encodecache.Block) {
	for c := range b.Section.Chunks() {
		k := blockKey{c, b.Delta}
		if c.Len() < leastKept {
			block := s.shards.blocks.Get(k)
			s.shards.kept.keepRuns(block)
			out = append(out, block)
			continue
		}
		block := s.shards.kept.find(k)
		if block == nil {
			block = s.shards.blocks.Get(k)
			s.shards.kept.keep(k, block)
		}
		out = append(out, block)
	}
	return out
}
