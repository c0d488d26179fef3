package fleet

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// Hostile runs clients that cost a server as much as they can: see roles. Each reconnects when it is disconnected.
type Hostile struct {
	// Immutable after StartHostile.
	dial     func() (net.Conn, error)
	pace     time.Duration
	requests *hostileRequests
	buffers  *wire.Buffers
	stop     chan struct{}

	running sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	acts    int
	want    int // the count that Await waits for
	reached chan struct{}
	at      time.Time // when reached was closed
}

// StartHostile starts clients that connect with dial. Each acts once every pace. They start one after the other during
// the first pace, so that their cost is spread evenly over time.
func StartHostile(clients int, pace time.Duration, dial func() (net.Conn, error)) *Hostile {
	h := &Hostile{dial: dial, pace: pace, requests: newHostileRequests(), buffers: wire.NewBuffers(),
		stop: make(chan struct{})}
	roles := roles()
	for i := range clients {
		h.running.Go(func() { h.live(i, roles[i%len(roles)], pace*time.Duration(i)/time.Duration(clients)) })
	}
	return h
}

// Await returns when the clients have acted n times in all, and when that was.
func (h *Hostile) Await(ctx context.Context, n int) (time.Time, error) {
	h.mu.Lock()
	reached := make(chan struct{})
	h.want, h.reached = n, reached
	h.tell()
	h.mu.Unlock()
	select {
	case <-reached:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// tell wakes Await. The caller holds mu.
func (h *Hostile) tell() {
	if h.reached != nil && h.acts >= h.want {
		close(h.reached)
		h.reached, h.at = nil, time.Now()
	}
}

// acted counts an act of a client.
func (h *Hostile) acted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts++
	h.tell()
}

// Close ends all clients.
func (h *Hostile) Close() {
	close(h.stop)
	h.running.Wait()
}

// live runs client i, after a delay. It opens one connection after the other.
func (h *Hostile) live(i int, r role, after time.Duration) {
	if !h.pause(after) {
		return
	}
	for n := 0; h.pause(h.pace); n++ {
		conn, err := h.dial()
		if err != nil {
			continue // the server may refuse connections
		}
		over := make(chan struct{})
		var ending sync.WaitGroup
		ending.Go(func() {
			select {
			case <-h.stop:
			case <-over:
			}
			conn.Close()
		})
		r(&attack{h, conn, i, n})
		close(over)
		ending.Wait()
	}
}

// pause waits for d. It returns false if the clients are ending.
func (h *Hostile) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-h.stop:
		return false
	case <-timer.C:
		return true
	}
}

// attack is one connection of a hostile client, the n-th of client i.
type attack struct {
	*Hostile
	conn net.Conn
	i, n int
}

// role is what a hostile client does with a connection; it returns when the connection has ended.
type role func(a *attack)

// roles returns all roles. Client i has the one at i modulo their number.
func roles() []role {
	stay := func(*attack, *wire.Conn, *wire.Stream) bool { return true }
	return []role{
		// Sends the largest request, with names that are chosen so that no hash ends a chunk and that no other client
		// has, and then does nothing.
		func(a *attack) { a.speak(false, nil, a.requests.names(a.i), stay) },
		// Refuses what it is sent, with the longest message, again and again.
		func(a *attack) {
			a.speak(false, nil, a.requests.clusters(a.i, 0), func(a *attack, _ *wire.Conn, s *wire.Stream) bool {
				s.Send(a.requests.refusal...)
				return true
			})
		},
		// Subscribes to 40 types that pilotd does not serve.
		func(a *attack) { a.speak(false, nil, a.requests.types(a.i), stay) },
		// Comes with a class of its own each time, and the largest node.
		func(a *attack) { a.speak(false, nil, a.requests.clusters(a.i, a.n+1), leave) },
		// Comes back with as many versions as a request can hold, and refuses.
		func(a *attack) { a.speak(true, nil, a.requests.versions(a.i), leave) },
		// Disappears after two requests, under a long name that no other client has.
		func(a *attack) { a.speak(false, nil, a.requests.two(a.i, a.n), leave) },
		// Subscribes and never reads.
		func(a *attack) { a.speak(false, a.stop, a.requests.clusters(a.i, 0), stay) },
		// Sends a request of 4 MiB without its end.
		(*attack).withhold,
		// Opens streams and resets them.
		func(a *attack) {
			a.speak(false, nil, nil, func(a *attack, c *wire.Conn, _ *wire.Stream) bool {
				for range 20 {
					s, err := c.Open(false, &ear{})
					if err != nil {
						return false
					}
					s.Send(a.requests.clusters(a.i, 0)[0]...)
					s.Reset()
				}
				return true
			})
		},
	}
}

// leave ends a connection at the next act.
func leave(*attack, *wire.Conn, *wire.Stream) bool { return false }

// speak opens a stream, sends requests and then calls act at each pace while it returns true. It reads what comes,
// unless deaf is not nil.
func (a *attack) speak(delta bool, deaf <-chan struct{}, requests [][][]byte,
	act func(*attack, *wire.Conn, *wire.Stream) bool) {
	c := wire.NewConn(a.conn, wire.Header{Authority: "hostile"}, a.buffers)
	s, err := c.Open(delta, &ear{a.conn, deaf})
	if err != nil {
		return
	}
	for _, r := range requests {
		s.Send(r...)
	}
	a.acted()
	var running sync.WaitGroup
	ended := make(chan struct{})
	running.Go(func() { _ = c.Run(); close(ended) })
	ticker := time.NewTicker(a.pace)
	defer ticker.Stop()
	for going := true; going; {
		select {
		case <-ended:
			going = false
		case <-ticker.C:
			going = act(a, c, s) && c.Flush() == nil
			a.acted()
		}
	}
	a.conn.Close()
	running.Wait()
}

// ear is a wire.Handler that ignores what it reads. If deaf is not nil, it reads nothing before deaf is closed.
type ear struct {
	conn net.Conn // closed when the server ends the stream; may be nil
	deaf <-chan struct{}
}

// Data implements wire.Handler.
func (e *ear) Data([]byte) error {
	if e.deaf != nil {
		<-e.deaf
	}
	return nil
}

// Ended implements wire.Handler.
func (e *ear) Ended(error) {
	if e.conn != nil {
		e.conn.Close()
	}
}

// withhold sends as much of a request of 4 MiB as the server's windows allow, but not its last byte, and waits.
func (a *attack) withhold() {
	defer a.acted()
	f := http2.NewFramer(a.conn, a.conn)
	if _, err := io.WriteString(a.conn, http2.ClientPreface); err != nil || f.WriteSettings() != nil {
		return
	}
	if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.requests.opening,
		EndHeaders: true}) != nil {
		return
	}
	left := largest - 1
	head := binary.BigEndian.AppendUint32([]byte{0}, largest)
	if f.WriteData(1, false, head) != nil {
		return
	}
	a.acted()
	for window := 65535 - len(head); ; {
		for n := min(window, left, 16<<10); n > 0; n = min(window, left, 16<<10) {
			if f.WriteData(1, false, a.requests.zeros[:n]) != nil {
				return
			}
			window, left = window-n, left-n
		}
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if w, ok := frame.(*http2.WindowUpdateFrame); ok && w.StreamID == 1 {
			window += int(w.Increment)
		}
	}
}
