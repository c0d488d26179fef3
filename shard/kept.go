package shard

import (
	"container/list"
	"sync"

	"github.com/pilotd/pilotd/encodecache"
)

// kept holds the encoded runs that are kept for clients that connect next. All workers share one budget of bytes; the
// run that was used least recently leaves first. Safe for concurrent use.
type kept struct {
	mu sync.Mutex
	// Guarded by mu.
	runs  map[any]*list.Element // of order, by blockKey; a Run by itself
	order list.List             // of *keptRun, the one used last in front
	bytes int64
	most  int64  // bytes that there may be
	gone  uint64 // runs that left for lack of room, ever
}

type keptRun struct {
	key any
	run encodedRun
}

// encodedRun is an encodecache.Block, or an encodecache.Run.
type encodedRun interface{ Len() int }

// find returns the block of a key, or nil if it is not kept.
func (k *kept) find(key blockKey) *encodecache.Block {
	b, _ := k.use(key).(*encodecache.Block)
	return b
}

// use returns what is kept of a key, if anything, and notes that it was used.
func (k *kept) use(key any) encodedRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.runs[key]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*keptRun).run
}

// keep keeps a run, if the budget allows it.
func (k *kept) keep(key any, b encodedRun) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.runs[key]; ok || int64(b.Len()) > k.most {
		return
	}
	if k.runs == nil {
		k.runs = map[any]*list.Element{}
	}
	k.runs[key] = k.order.PushFront(&keptRun{key, b})
	k.bytes += int64(b.Len())
	k.shrink()
}

// keepRuns keeps the runs that a block shares with others. What a single namespace has for itself is made again for the
// next client that comes from there.
func (k *kept) keepRuns(b *encodecache.Block) {
	for _, r := range b.Runs() {
		if r.Shared() && r.Len() >= leastShared && k.use(r) == nil {
			k.keep(r, r)
		}
	}
}

// leastShared is how many bytes a run must have to be worth keeping.
const leastShared = 4 << 10

// allow sets how many bytes may be kept, and drops what is beyond that. It reports whether it dropped anything.
func (k *kept) allow(most int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.most = most
	if k.bytes <= most {
		return false
	}
	k.shrink()
	return true
}

// shrink drops the runs that were used least recently until the rest fits the budget. The caller holds mu.
func (k *kept) shrink() {
	for k.bytes > k.most {
		e := k.order.Back()
		r := k.order.Remove(e).(*keptRun)
		delete(k.runs, r.key)
		k.bytes -= int64(r.run.Len())
		k.gone++
	}
}

// forget drops all runs, because nobody will ask for them.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.runs) > 0 {
		k.runs, k.bytes = nil, 0
		k.order.Init()
	}
}

// held returns how many bytes are kept now.
func (k *kept) held() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes
}
