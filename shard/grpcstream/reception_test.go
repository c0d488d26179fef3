package grpcstream

import (
	"context"
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"

	"github.com/pilotd/pilotd/xdstype"
)

// withhold begins a request of n bytes on a stream, and sends as much of it as the server allows, but for the last
// byte.
func (c *rawClient) withhold(t *testing.T, n int) (sent *int) {
	head := make([]byte, 5)
	binary.BigEndian.PutUint32(head[1:], uint32(n))
	must(t, c.framer.WriteData(1, false, head))
	sent = new(int)
	room := make(chan int, 100)
	go func() { // the reader
		defer close(room)
		for {
			f, err := c.framer.ReadFrame()
			if err != nil {
				return
			}
			if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 1 {
				room <- int(w.Increment)
			}
		}
	}()
	go func() {
		// What is left of the first window is less than this by the first request; it does not matter how much.
		for window := 60 << 10; ; {
			for window > 0 && *sent < n-1 {
				part := min(window, n-1-*sent, 16<<10)
				if c.framer.WriteData(1, false, make([]byte, part)) != nil {
					return
				}
				*sent, window = *sent+part, window-part
			}
			more, ok := <-room
			if !ok {
				return
			}
			window += more
		}
	}()
	return sent
}

// However many clients send requests of 4 MiB and withhold the end, the server takes in no more of them than it has
// places for; the others are kept from sending more than their window. A client with a request of the usual size, or a
// large one that is smaller than theirs, is heard meanwhile.
func TestRequestsInReceptionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, large, hostile = 64 << 20, 4<<20 - 100, 50
		h := start(t, Options{Limits: Limits{ReceivedInAll: most}, RequestTime: 20 * time.Second, AfterFunc: afterFunc})
		var sent []*int
		for range hostile {
			c, _ := attachRaw(t, h)
			sent = append(sent, c.withhold(t, large))
		}
		synctest.Wait()
		whole, all := 0, 0
		for _, n := range sent {
			if *n == large-1 {
				whole++
			} else if *n > streamWindow {
				t.Errorf("%d bytes of a request are sent that has no place", *n)
			}
			all += *n
		}
		if whole != most/large-spareShare || all > most+hostile*streamWindow ||
			h.server.reception.bytes() != whole*large {
			t.Errorf("%d requests have a place, %d bytes are sent, %d counted", whole, all, h.server.reception.bytes())
		}
		honest := h.sotw(t)
		must(t, honest.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		h.backend.next(t, "attach")
		must(t, honest.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL, ResourceNames: manyNames(600)}))
		if n := h.backend.next(t, "receive").req.Names.Len(); n != 600 {
			t.Errorf("%d names are heard", n)
		}
		time.Sleep(3 * time.Minute) // all hostile ones have had their turn
		synctest.Wait()
		if h.server.Streams() != 1 || h.server.reception.bytes() != 0 || h.server.reception.waits.Load() != 0 {
			t.Errorf("%d streams are open, %d bytes have a place, %d requests wait", h.server.Streams(),
				h.server.reception.bytes(), h.server.reception.waits.Load())
		}
		must(t, honest.CloseSend())
		_, err := honest.Recv()
		if err != io.EOF {
			t.Error(err)
		}
	})
}

// manyNames returns n names of some kilobyte each.
func manyNames(n int) (out []string) {
	for i := range n {
		name := make([]byte, 1000)
		for j := range name {
			name[j] = 'a' + byte((i>>(j%10))&1)
		}
		out = append(out, string(name)+string(rune('a'+i%26)))
	}
	return out
}

// A request that withholds its end has a look's time while others wait, and its whole time while none does.
func TestPlacesInReceptionAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Limits: Limits{ReceivedInAll: 1 << 20}, RequestTime: 20 * time.Second,
			AfterFunc: afterFunc})
		c, first := attachRaw(t, h)
		c.withhold(t, 1<<20)
		time.Sleep(15 * time.Second)
		if first.grpc.Context().Err() != nil {
			t.Fatal("a request is cut off that nobody waits for")
		}
		begin := time.Now()
		late := h.sotw(t)
		must(t, late.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(2), TypeUrl: xdstype.EndpointURL,
			ResourceNames: manyNames(500)}))
		if e := h.backend.next(t, "detach"); e.id != first.id {
			t.Error("another stream ended")
		}
		h.backend.next(t, "attach")
		if d := time.Since(begin); d > 2*pace || h.server.Stats().Refused[ReasonDeadline] != 1 {
			t.Errorf("heard after %v, %+v", d, h.server.Stats())
		}
	})
}

// Places go to the smallest that waits; who is gone waits for none and keeps none.
func TestReceptionOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReception(8 << 20)
		must(t, r.enter(t.Context(), 8<<20)) // alone
		let := make(chan int, 10)
		gone, leave := context.WithCancel(t.Context())
		var left error
		go func() { left = r.enter(gone, 200<<10) }()
		for _, kib := range []int{1000, 300, 4000, 500} {
			go func() {
				must(t, r.enter(t.Context(), kib<<10))
				let <- kib
				time.Sleep(time.Second)
				r.leave(kib << 10)
			}()
		}
		synctest.Wait()
		must(t, r.enter(t.Context(), smallRequest))
		leave()
		synctest.Wait()
		if left != context.Canceled || r.waits.Load() != 4 {
			t.Error(left, r.waits.Load())
		}
		r.leave(8 << 20)
		time.Sleep(time.Minute)
		var order []int
		for range 4 {
			order = append(order, <-let)
		}
		if len(order) != 4 || max(order[0], order[1]) != 500 || order[2] != 1000 || order[3] != 4000 || r.bytes() != 0 {
			t.Error(order, r.bytes())
		}
	})
}

// Connections without streams are bounded; those that have one, or had one a moment ago, stay.
func TestIdleConnectionsAreBounded(t *testing.T) {
	h := newHouse(t, Options{}, nil)
	h.server.idle.most = 5
	h.serve(t)
	c := h.sotw(t)
	must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
	h.backend.next(t, "attach")
	closed := make(chan bool, 20)
	for range 20 {
		conn, err := h.lis.Dial()
		must(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, http2.ClientPreface)
		must(t, err)
		must(t, http2.NewFramer(conn, conn).WriteSettings())
		go func() {
			_, _ = io.Copy(io.Discard, conn) // it ends when the server closes it
			closed <- true
		}()
	}
	for range 15 {
		<-closed
	}
	must(t, c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL}))
	h.backend.next(t, "receive")
	must(t, c.CloseSend())
	h.backend.next(t, "detach")
	_, err := c.Recv()
	if err != io.EOF {
		t.Error(err)
	}
}
