package discovery

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// muchMore is how many times its share a replica must have before it sends clients away, littleMore how many
	// it stops at; fewStreams is a difference that is not worth it.
	muchMore, littleMore, fewStreams = 1.25, 1.05, 20
	// restRounds is for how many rounds a client is left alone that has connected.
	restRounds = 6
)

// Balance keeps a replica at its share of all streams: where it has far more than the mean, some clients are asked to
// connect again, a few a second, until it has little more. Its methods are for one goroutine; metrics are read by any.
type Balance struct {
	// Immutable after NewBalance.
	streams interface {
		Streams() int
		Newest() uint64
		SendAway(newest uint64) bool
	}
	most int // clients in a round

	// Owned by the goroutine of Round.
	sheds bool
	marks []uint64 // the newest streams of the last rounds, the oldest first

	share, away atomic.Int64
}

// NewBalance makes a Balance that asks at most most clients in each round.
func (s *Server) NewBalance(most int) *Balance {
	b := &Balance{streams: s.Streams, most: most}
	s.Metrics.Gauge("pilotd_xds_share", "Streams that each replica would have if all had as many; 0 while not known.",
		func() float64 { return float64(b.share.Load()) })
	s.Metrics.Counter("pilotd_xds_sent_away_total",
		"Clients that were asked to connect again, because this replica had far more than its share.",
		func() float64 { return float64(b.away.Load()) })
	return b
}

// Round takes the loads of the other replicas that are known now, and returns how many clients are to be sent away
// before the next round.
func (b *Balance) Round(others []int) int {
	own, all := b.streams.Streams(), 0
	for _, n := range others {
		all += n
	}
	share := (own + all) / (len(others) + 1)
	b.share.Store(int64(share))
	b.marks = append(b.marks, b.streams.Newest())
	if len(b.marks) > restRounds+1 {
		b.marks = b.marks[1:]
	}
	limit := muchMore
	if b.sheds {
		limit = littleMore
	}
	b.sheds = len(others) > 0 && float64(own) > limit*float64(share) && own-share > fewStreams
	if !b.sheds || len(b.marks) <= restRounds {
		return 0
	}
	return min(own-share, b.most)
}

// SendAway asks n clients to connect again, evenly over d.
func (b *Balance) SendAway(ctx context.Context, n int, d time.Duration) {
	if n == 0 {
		return
	}
	tick := time.NewTicker(d / time.Duration(n+1))
	defer tick.Stop()
	for range n {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !b.streams.SendAway(b.marks[0]) {
			return
		}
		b.away.Add(1)
	}
}
