package grpcstream

import (
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotd/pilotd/xdstype"
)

// A client that leaves little unread, so that no writer waits for it, is cut off as well.
func TestLittleUnreadIsStuckToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Stuck: time.Minute, AfterFunc: afterFunc})
		_, idle := attachRaw(t, h) // owes nothing
		c, s := attachRaw(t, h)
		time.Sleep(time.Hour)
		begin := time.Now()
		s.Send(xdstype.ClusterURL, sized(1000))
		for {
			if _, err := c.framer.ReadFrame(); err != nil {
				break // its connection is closed
			}
		}
		if e := h.backend.next(t, "detach"); e.id != s.id {
			t.Error("another stream ended:", e.id)
		}
		if d := time.Since(begin); d < time.Minute || d > time.Minute+2*pace ||
			h.server.Stats() != (Stats{Direct: 1, Stuck: 1}) {
			t.Errorf("cut off after %v, %+v", d, h.server.Stats())
		}
		idle.Close(nil)
		h.backend.next(t, "detach")
	})
}

// When too much waits for all, clients that read nothing are cut off before their time, those that stopped first first,
// and only as many as have to be. Slow ones are left alone.
func TestTooMuchHeldInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Stuck: time.Hour, AfterFunc: afterFunc, Limits: Limits{HeldInAll: 450_000}})
		slow, reader := attachRaw(t, h)
		reader.Send(xdstype.ClusterURL, sized(10_000))
		var mute []uint64
		gone := map[uint64]bool{}
		for range 8 {
			openRaw(t, h, &discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL})
			e := <-h.backend.events
			for ; e.what == "detach"; e = <-h.backend.events {
				gone[e.id] = true
			}
			s := e.stream
			s.Send(xdstype.ClusterURL, sized(100_000))
			mute = append(mute, s.ID())
			for range 3 { // three reads a look
				time.Sleep(pace / 3)
				slow.take(t, 10_000)
				slow.data(t, 10_000)
				reader.Send(xdstype.ClusterURL, sized(10_000))
			}
		}
		time.Sleep(10 * pace)
		synctest.Wait()
		for len(h.backend.events) > 0 {
			gone[h.backend.next(t, "detach").id] = true
		}
		for i, id := range mute {
			if gone[id] != (i < 4) {
				t.Errorf("client %d was cut off: %v", i, gone[id])
			}
		}
		if st := h.server.Stats(); len(gone) != 4 || st.Shed != 4 || st.Stuck != 0 || h.server.Unwritten() > 450_000 {
			t.Errorf("%d were cut off, %+v, %d bytes wait", len(gone), st, h.server.Unwritten())
		}
	})
}
