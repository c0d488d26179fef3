package discovery

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// A replica starts to send clients away when it has muchMore times its share of streams, and stops at littleMore
	// times. A difference below fewStreams is not worth it.
	muchMore, littleMore, fewStreams = 1.25, 1.05, 20
	// restRounds is the number of rounds in which a newly connected client is not sent away.
	restRounds = 6
)

// Balance keeps a replica at its share of all streams: if it has far more than the mean, it asks some clients to
// reconnect, a few each second, until it has little more. Only one goroutine may call its methods; any may read the
// metrics.
type Balance struct {
	// Immutable after NewBalance.
	streams interface {
		Streams() int
		Newest() uint64
		SendAway(newest uint64) bool
	}
	most int // clients sent away in a round, at most

	// Owned by the goroutine of Round.
	sheds bool
	marks []uint64 // the newest stream at the end of each of the last rounds, the oldest round first

	share, away atomic.Int64
}

// NewBalance returns a Balance that sends away at most most clients in each round.
func (s *Server) NewBalance(most int) *Balance {
	b := &Balance{streams: s.Streams, most: most}
	s.Metrics.Gauge("pilotd_xds_share", "Streams that each replica would have if all had as many; 0 while not known.",
		func() float64 { return float64(b.share.Load()) })
	s.Metrics.Counter("pilotd_xds_sent_away_total",
		"Clients that were asked to connect again, because this replica had far more than its share.",
		func() float64 { return float64(b.away.Load()) })
	return b
}

// Round takes the present loads of the other replicas, and returns how many clients to send away before the next round.
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

// SendAway asks n clients to reconnect, spread evenly over d. It blocks for that time.
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
