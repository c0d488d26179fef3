package shard

import (
	"slices"
	"sync"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/shard/ads"
)

// What happens as memory gets short, in this order, by the share of the limit that is live:
//
//	below 60%   what only saves time is kept: encoded runs up to an 8th of the limit, and no more than what is left
//	            below the 60%
//	60%         nothing is kept: runs, EncodedAnys of resources and what the Differs remember are let go of
//	75%         proxies that connect are planned for and answered one at a time, until less than 70% is live
//
// Up to a fifth of the collector's memory can be free space between live objects, so that it runs out of room well
// below 100%.
//
// The endpoint lane, acknowledgements and new ResourceSets never wait for memory.
const (
	// keepBelow is the share of the limit, in percent, below which things are kept that only save time: the collector then
	// has room to work at its usual pace.
	keepBelow = 60
	// Proxies that connect wait for each other from the share shortFrom on, until the share falls below shortUntil.
	shortFrom, shortUntil = 75, 70
	// Kept runs may take a keptShare-th of the limit, and never more than mostKept, for more is of no use.
	keptShare = 8
	mostKept  = 256 << 20
)

// Memory is a reading of the memory that this process uses.
type Memory struct {
	// Live are the bytes that the last collection found in use, with what the runtime needs besides (stacks, its own
	// tables).
	Live int64
	// Limit is what the collector keeps the process below; 0 is none.
	Limit int64
}

// memory is what follows from the last reading.
type memory struct {
	mu sync.Mutex
	// Guarded by mu.
	last     Memory
	tight    bool   // nothing is kept
	short    bool   // proxies that connect wait for each other
	gaveWay  uint64 // how often something was dropped, ever
	shortage uint64 // how often memory got short, ever
}

// MemoryRead takes a reading that was made after a collection, and decides by it what is kept and how many proxies that
// connect are answered at once. Any goroutine may call it; it does not block.
func (s *Shards) MemoryRead(m Memory) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.last = m
	most := allowed(m, s.kept.held())
	if s.kept.allow(most) {
		s.memory.gaveWay++
	}
	s.memory.tight = m.Limit > 0 && most == 0
	if s.memory.tight {
		s.memory.gaveWay++
		for _, w := range s.workers {
			w.slots.postQuery(w.giveWay)
		}
	}
	short := m.Limit > 0 && m.Live >= m.Limit/100*shortFrom
	if s.memory.short && m.Live >= m.Limit/100*shortUntil {
		short = m.Limit > 0
	}
	if short && !s.memory.short {
		s.memory.shortage++
	}
	s.memory.short = short
	s.budget.Ration(short)
	s.gate.Ration(short)
}

// allowed returns how many bytes of runs may be kept; held are kept now.
func allowed(m Memory, held int64) int64 {
	if m.Limit <= 0 {
		return mostKept
	}
	others := m.Live - held
	return max(0, min(m.Limit/100*keepBelow-others, m.Limit/keptShare, mostKept))
}

// giveWay drops what a worker has that only saves time. It runs on the worker goroutine.
func (w *worker) giveWay() {
	w.differ.Forget()
	seen := map[*ads.Resources]struct{}{}
	for c := range w.roster.groups {
		all := c.desired.resources
		if j := c.desired.endpoints; j != nil {
			all = append(slices.Clip(all), j.content)
		}
		for _, content := range all {
			if content == nil {
				continue
			}
			if _, ok := seen[content]; ok {
				continue
			}
			seen[content] = struct{}{}
			dropAllEncoded(content.Section)
		}
	}
}

func dropAllEncoded(s classes.Section) {
	for c := range s.Chunks() {
		for _, e := range c.Values() {
			e.Drop()
		}
	}
}

// MemoryStats is the last reading, and what followed from it.
type MemoryStats struct {
	Memory
	// Kept are the bytes of encoded runs that are kept for clients that connect, and KeptLimit is how many there may be
	// now.
	Kept, KeptLimit int64
	// GaveWay counts how often something was dropped for lack of memory, Gone the runs among it, and Shortages how often
	// proxies that connect began to wait for each other. Short tells whether they do so now.
	GaveWay, Gone, Shortages uint64
	Short                    bool
}

// MemoryStats returns the last reading, and what followed from it.
func (s *Shards) MemoryStats() MemoryStats {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	return MemoryStats{
		Memory: s.memory.last, Kept: s.kept.bytes, KeptLimit: s.kept.most,
		GaveWay: s.memory.gaveWay, Gone: s.kept.gone, Shortages: s.memory.shortage, Short: s.memory.short,
	}
}
