package grpcstream

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// rawClient is one stream of an HTTP/2 client that gives the server exactly as much window as it says.
type rawClient struct {
	conn   net.Conn
	framer *http2.Framer
}

// openRaw begins a State-of-the-World stream with a window of no byte, and sends first.
func openRaw(t *testing.T, h *house, first *discoveryv3.DiscoveryRequest) *rawClient {
	t.Helper()
	conn, err := h.lis.Dial()
	must(t, err)
	c := &rawClient{conn: conn, framer: http2.NewFramer(conn, conn)}
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(t, err)
	must(t, c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	must(t, c.framer.WriteWindowUpdate(0, 1<<30)) // of the connection
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "test"},
		{":path", "/" + serviceName + "/" + sotwMethod}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		must(t, enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	must(t, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}))
	c.send(t, first)
	return c
}

func (c *rawClient) send(t *testing.T, m proto.Message) {
	t.Helper()
	b, err := proto.Marshal(m)
	must(t, err)
	b = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
	must(t, c.framer.WriteData(1, false, b))
}

// take gives the server n more bytes of window.
func (c *rawClient) take(t *testing.T, n int) {
	t.Helper()
	must(t, c.framer.WriteWindowUpdate(1, uint32(n)))
}

// data reads until n bytes of messages have come.
func (c *rawClient) data(t *testing.T, n int) {
	t.Helper()
	for n > 0 {
		f, err := c.framer.ReadFrame()
		must(t, err)
		if d, ok := f.(*http2.DataFrame); ok {
			n -= len(d.Data())
		}
	}
	if n < 0 {
		t.Fatal("more data than the window allows:", -n)
	}
}

// sized returns a response of exactly n bytes with grpc's header.
func sized(n int) *encodecache.Response {
	r := response("1", n-200)
	for pad := n - 200; r.Len()+headerLen != n; {
		pad += n - r.Len() - headerLen
		r = response("1", pad)
	}
	return r
}

// attachRaw returns a client that reads nothing, and its stream on the server.
func attachRaw(t *testing.T, h *house) (*rawClient, *stream) {
	c := openRaw(t, h, &discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL})
	return c, h.backend.next(t, "attach").stream.(*stream)
}

// TestQuota: SendMsg takes a message whole while fewer than 64 KiB of the stream are not written, and blocks from there
// on. All that this package knows of grpc's insides is here; if this test fails with another grpc, see the package
// comment.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		c, s := attachRaw(t, h)
		sent := make(chan int, 10)
		send := func(n int) {
			r := sized(n)
			go func() { s.give(r); sent <- n }()
			synctest.Wait()
		}
		returned := func() (sum int) {
			for len(sent) > 0 {
				sum += <-sent
			}
			return sum
		}
		if send(sendQuota - 1); returned() != sendQuota-1 || s.unsent.Load() != sendQuota-1 {
			t.Fatal("the first message blocks, or is not counted:", s.unsent.Load())
		}
		if send(5000); returned() != 5000 {
			t.Fatal("a message blocks though one byte of the quota is left")
		}
		if send(1000); returned() != 0 {
			t.Fatal("a message is taken beyond the quota")
		}
		// The count falls when a message is written whole, never before, and SendMsg goes on when the quota is
		// positive.
		c.take(t, 5000-1)
		if synctest.Wait(); returned() != 0 {
			t.Fatal("SendMsg goes on too early")
		}
		c.take(t, 1)
		if synctest.Wait(); returned() != 1000 || s.unsent.Load() != sendQuota-1+5000+1000 {
			t.Fatal("SendMsg does not go on, or the count fell too early:", s.unsent.Load())
		}
		c.take(t, sendQuota-1-5000-1)
		if synctest.Wait(); s.unsent.Load() != sendQuota-1+5000+1000 {
			t.Fatal("a message counts as written before its last byte is:", s.unsent.Load())
		}
		c.take(t, 1)
		if synctest.Wait(); s.unsent.Load() != 5000+1000 {
			t.Fatal("a written message still counts:", s.unsent.Load())
		}
		c.take(t, 6000)
		c.data(t, sendQuota-1+6000)
		synctest.Wait()
		if s.unsent.Load() != 0 || s.progress.Load() != 3 {
			t.Fatal("at rest:", s.unsent.Load(), s.progress.Load())
		}
		// One message may be of any size.
		if send(10 * sendQuota); returned() != 10*sendQuota {
			t.Fatal("a big message blocks")
		}
	})
}

// A client that answers what it has not read, so that an ACK stands for nothing, does not block the worker either.
func TestSendNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		c, s := attachRaw(t, h)
		rnd := rand.New(rand.NewPCG(1, 2))
		const messages = 2000
		total := 0
		var responses []*encodecache.Response
		for range messages {
			n := rnd.IntN(20_000)
			if rnd.IntN(20) == 0 {
				n += rnd.IntN(300_000)
			}
			r := response("1", n)
			responses, total = append(responses, r), total+r.Len()+headerLen
		}
		done := make(chan time.Duration)
		go func() {
			begin := time.Now()
			for _, r := range responses {
				s.Send(xdstype.ClusterURL, r)
				c.send(t, &discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ClusterURL, ResponseNonce: "1"})
				<-h.backend.events
			}
			done <- time.Since(begin)
		}()
		if d := <-done; d != 0 { // the bubble's clock stands still unless all wait
			t.Fatal("the worker waited for", d)
		}
		// The client takes all, a little at a time. More is sent meanwhile, by worker and writer in turn.
		r, sent := response("1", 7000), messages
		for total > 0 || sent < messages+1000 {
			if sent < messages+1000 && (total == 0 || rnd.IntN(3) == 0) {
				sent, total = sent+1, total+r.Len()+headerLen
				s.Send(xdstype.ClusterURL, r)
			}
			n := min(total, 1+rnd.IntN(200_000))
			c.take(t, n)
			c.data(t, n)
			total -= n
		}
		synctest.Wait()
		st := h.server.Stats()
		if s.unsent.Load() != 0 || s.held != 0 || s.writing || int(s.progress.Load()) != sent {
			t.Error("at rest:", s.unsent.Load(), s.held, s.writing, s.progress.Load())
		}
		if int(st.Direct+st.Queued) != sent || st.Direct < 100 || st.Queued < 1000 {
			t.Errorf("%+v", st)
		}
	})
}
