package grpcstream

import (
	"testing"
	"testing/synctest"

	"github.com/pilotd/pilotd/shard/ads"
)

// Each response counts until the client has room for its last byte, whether the worker sends it or a writer; then it is told.
func TestDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drained := make(chan uint64, 10)
		h := start(t, Options{Drained: func(id uint64) { drained <- id }})
		c, s := attachRaw(t, h)
		direct, queued := sized(60_000), sized(90_000)
		s.Send(ads.ClusterURL, direct)
		s.Send(ads.ClusterURL, queued)
		s.Send(ads.ClusterURL, queued)
		for _, step := range []struct{ left, take int }{{240_000, 60_000}, {180_000, 90_000}, {90_000, 89_999}, {90_000, 1}} {
			synctest.Wait()
			if n := h.server.Unwritten(); n != step.left || len(drained) != 0 || !s.Backlogged() {
				t.Fatalf("%d bytes count, want %d; told of %d streams", n, step.left, len(drained))
			}
			c.take(t, step.take)
			c.data(t, step.take)
		}
		synctest.Wait()
		if h.server.Unwritten() != 0 || len(drained) != 1 || <-drained != s.id || s.Backlogged() {
			t.Errorf("at rest: %d bytes, told of %d streams", h.server.Unwritten(), len(drained))
		}
	})
}
