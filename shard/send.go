package shard

import (
	"runtime"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
)

// What a client is sent of answers for types that are not served, in bytes of names.
const (
	// maxUnserved bounds one answer to a client that has read all that it was sent.
	maxUnserved = 64 << 10
	// maxBesides bounds those that a client has been sent and may not have read. A single one may be larger.
	maxBesides = 8 << 10
)

// sender assembles responses and sends them. Owned by the worker goroutine.
type sender struct {
	// Immutable.
	shards *Shards
	stats  *stats

	responses map[*ads.Batch]*encodecache.Response // of this round
	given     int                                  // bytes of responses, ever
}

// send sends a response, unless admitsUnserved holds it back.
func (s *sender) send(m *client, e ads.Effect, at time.Time) {
	_, served := s.shards.opts.Types.Of(e.TypeURL)
	if !served && !m.admitsUnserved(e.Batch) {
		return
	}
	r := s.response(e.Batch)
	m.stream.Send(e.TypeURL, r)
	s.stats.sent.Add(1)
	s.given += r.Len()
	if served {
		s.shards.opts.Metrics.Sent(e.Type, r.Len(), s.sinceChange(at))
	}
	// Each response makes a goroutine of grpc ready, and Go runs goroutines in the order in which they became ready.
	// Whoever else has something to do in this process (the webhook, the pages, another shard) must not wait until all
	// streams have theirs.
	runtime.Gosched()
}

// admitsUnserved reports whether a client may be sent an answer for a type that is not served. Such answers wait for no
// ACK, so they have bounds, and what is beyond them is lost. It is decided before the answer is assembled: what is lost
// costs nothing.
func (m *client) admitsUnserved(b *ads.Batch) bool {
	size := len(b.TypeURL)
	for _, name := range b.Removed {
		size += len(name)
	}
	switch {
	case size > maxUnserved:
		return false
	case !m.backlogged():
		m.besides = size
	case m.besides+size > maxBesides:
		return false
	default:
		m.besides += size
	}
	return true
}

func (s *sender) sinceChange(at time.Time) time.Duration {
	if at.IsZero() {
		return -1
	}
	return s.shards.clock.now().Sub(at)
}

// response returns the assembled form of a Batch. Clients that are sent the same Batch in a round share it.
func (s *sender) response(b *ads.Batch) *encodecache.Response {
	r, ok := s.responses[b]
	if !ok {
		a, h := s.shards.opts.Assembler, encodecache.Header{TypeURL: b.TypeURL, Version: b.Version, Nonce: b.Nonce}
		switch {
		case b.Section.Len() > 0 && b.Delta:
			r = a.DeltaBlocks(h, s.blocksOf(b), b.Removed)
		case b.Section.Len() > 0:
			r = a.SotWBlocks(h, s.blocksOf(b))
		case b.Delta:
			r = a.Delta(h, b.Entries, b.Removed)
		default:
			r = a.SotW(h, b.Entries)
		}
		s.responses[b] = r
		s.stats.assembled.Add(1)
	} else if j := r.Joined(); j != r {
		s.responses[b], r = j, j
	}
	return r
}
