package grpcstream

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/xdstype"
)

func afterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// I6: a client that stops reading delays nobody.
func TestStuckClientDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		_, stuck := attachRaw(t, h)
		c := h.sotw(t)
		must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(2), TypeUrl: xdstype.ClusterURL}))
		other := h.backend.next(t, "attach").stream
		begin := time.Now()
		r := pieces("1", fewPieces/4)
		for range 100 { // by one worker
			stuck.Send(xdstype.ClusterURL, r)
			other.Send(xdstype.ClusterURL, r)
			_, err := c.Recv()
			must(t, err)
		}
		if d := time.Since(begin); d != 0 {
			t.Error("the other client was", d, "late")
		}
		if !stuck.Backlogged() {
			t.Error("a client that reads nothing has no backlog")
		}
		stuck.Close(status.Error(codes.Unavailable, "end of test"))
		h.backend.next(t, "detach")
	})
}

func TestStuckClientIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Stuck: time.Minute, AfterFunc: afterFunc})
		c, s := attachRaw(t, h)
		r := sized(40_000)
		begin := time.Now()
		for range 6 {
			s.Send(xdstype.ClusterURL, r)
		}
		// A slow one is not stuck: one message in 50 seconds.
		for range 2 {
			time.Sleep(50 * time.Second)
			c.take(t, 40_000)
			c.data(t, 40_000)
		}
		for {
			if _, err := c.framer.ReadFrame(); err != nil {
				break // its connection is closed
			}
		}
		h.backend.next(t, "detach")
		if d := time.Since(begin); d < 2*time.Minute || d > 4*time.Minute || h.server.Stats().Stuck != 1 {
			t.Errorf("cut off after %v, %+v", d, h.server.Stats())
		}
	})
}

func TestTooMuchHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Limits: Limits{HeldBytes: 300_000}})
		c, s := attachRaw(t, h)
		r := sized(100_000)
		for range 5 { // one with grpc, one with the writer, three are held
			s.Send(xdstype.ClusterURL, r)
			synctest.Wait()
		}
		if s.ended {
			t.Fatal("ended below the limit")
		}
		s.Send(xdstype.ClusterURL, r)
		h.backend.next(t, "detach")
		if s.err == nil || !strings.Contains(s.err.Error(),
			"too many bytes waiting for this stream: 399980, the limit is 300000") {
			t.Error(s.err)
		}
		// The status follows what grpc has taken.
		c.take(t, 100_000)
		c.data(t, 100_000)
		for {
			f, err := c.framer.ReadFrame()
			must(t, err)
			if f, ok := f.(*http2.HeadersFrame); ok && f.StreamEnded() {
				break
			}
		}
	})
}

// The writer ends when it has sent all, and the worker sends by itself again.
func TestWriterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Stuck: time.Minute, AfterFunc: afterFunc})
		c := h.sotw(t)
		must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(2), TypeUrl: xdstype.ClusterURL}))
		s := h.backend.next(t, "attach").stream
		big, small := pieces("big", fewPieces+1), response("small", 10)
		s.Send(xdstype.ClusterURL, big)
		s.Send(xdstype.ClusterURL, small) // not before the big one
		for _, want := range []string{"big", "small"} {
			got, err := c.Recv()
			must(t, err)
			if got.Nonce != want {
				t.Error("got", got.Nonce, "want", want)
			}
		}
		synctest.Wait()
		time.Sleep(time.Hour) // no watchdog is left
		s.Send(xdstype.ClusterURL, small)
		_, err := c.Recv()
		must(t, err)
		if st := h.server.Stats(); st.Direct != 1 || st.Queued != 2 || st.Writers > 2 {
			t.Errorf("%+v", st)
		}
	})
}
