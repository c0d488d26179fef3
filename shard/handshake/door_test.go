package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener of connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	errs   chan error
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// placed is a connection that comes from an address.
type placed struct {
	net.Conn
	from net.Addr
}

func (p placed) RemoteAddr() net.Addr { return p.from }

// house is a Door that is served: each handshake is made by a goroutine of its own, as grpc does it.
type house struct {
	t         *testing.T
	pipes     *pipes
	door      *Door
	served    sync.WaitGroup
	computing atomic.Int32
	most      atomic.Int32 // that were computing at once
	order     []string     // of the addresses that were accepted
}

func start(t *testing.T, o Options) *house {
	o.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	h := &house{t: t, pipes: &pipes{make(chan net.Conn), make(chan struct{}), make(chan error)}}
	h.door = Listen(h.pipes, o)
	creds := h.door.Credentials(credentials.NewTLS(h.serving()))
	h.served.Go(func() {
		for {
			raw, err := h.door.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			h.order = append(h.order, raw.RemoteAddr().String())
			h.served.Go(func() {
				conn, _, err := creds.ServerHandshake(raw)
				if err != nil {
					raw.Close()
					return
				}
				_, _ = io.Copy(conn, conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		if err := h.door.Close(); err != nil {
			t.Error(err)
		}
		h.served.Wait()
		if n := h.door.turns.Waiting(); n != 0 {
			t.Errorf("%d wait for a turn", n)
		}
	})
	return h
}

// serving is a server's configuration, which counts who computes.
func (h *house) serving() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	cert := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{NextProtos: []string{"h2"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		h.most.Store(max(h.most.Load(), h.computing.Add(1)))
		time.Sleep(time.Millisecond) // of the bubble: others would come here if they could
		h.computing.Add(-1)
		return cert, nil
	}}
}

// come connects from an address and says nothing.
func (h *house) come(from string) net.Conn {
	client, server := net.Pipe()
	addr, err := net.ResolveTCPAddr("tcp", from+":1")
	if err != nil {
		h.t.Fatal(err)
	}
	h.pipes.conns <- placed{server, addr}
	synctest.Wait()
	h.t.Cleanup(func() { client.Close() })
	return client
}

// talks reports whether a client gets through a handshake, and is answered.
func talks(conn net.Conn) error {
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// ended reports whether the server has closed a connection.
func ended(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now())
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	_, err := conn.Read(make([]byte, 1))
	return err == io.EOF
}

// Of a crowd some handshakes are under way, one of them computes, the others wait as connections alone, and all of
// them get through.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Waiting: 100, Underway: 5, Computing: 1})
		var conns []net.Conn
		for i := range 50 {
			conns = append(conns, h.come(fmt.Sprintf("10.0.0.%d", i)))
		}
		if s := h.door.Stats(); s != (Stats{Waiting: 45, Underway: 5}) {
			t.Errorf("%+v", s)
		}
		var all sync.WaitGroup
		for _, c := range conns {
			all.Go(func() {
				if err := talks(c); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s := h.door.Stats(); s != (Stats{Done: 50}) || h.most.Load() != 1 {
			t.Errorf("%+v, %d computed at once", s, h.most.Load())
		}
	})
}

// A client that does not go on has ten seconds, and five while others wait; its turn to compute is not kept. One that
// waits for its handshake to begin has all the time that takes.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Waiting: 10, Underway: 2, Computing: 1})
		alone := h.come("10.0.0.1")
		time.Sleep(9 * time.Second)
		if ended(alone) {
			t.Error("it is given up early")
		}
		time.Sleep(2 * time.Second)
		if !ended(alone) || h.door.Stats() != (Stats{Slow: 1}) {
			t.Errorf("it is not given up: %+v", h.door.Stats())
		}
		for range 4 {
			h.come("10.0.0.1")
		}
		begin := time.Now()
		good := h.come("10.0.0.2")
		if err := talks(good); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 6*time.Second || d < 4*time.Second {
			t.Errorf("a good one had to wait for %v", d)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := h.door.Stats(); s != (Stats{Slow: 5, Done: 1}) {
			t.Errorf("%+v", s)
		}
	})
}

// Addresses go in rounds. When no more may wait, one of those with most makes room for another address; a crowd of one
// address is kept in the kernel.
func TestAddressesGoInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Waiting: 4, Underway: 1, Computing: 1})
		var greedy []net.Conn
		for range 5 {
			greedy = append(greedy, h.come("10.0.0.1")) // one under way, four wait
		}
		other := h.come("10.0.0.2")
		if !ended(greedy[4]) || ended(greedy[3]) || ended(other) {
			t.Error("the last one of who has most makes room")
		}
		h.come("10.0.0.1") // it waits outside
		third := make(chan net.Conn)
		go func() { third <- h.come("10.0.0.3") }()
		synctest.Wait()
		select {
		case <-third:
			t.Error("somebody is taken though one waits outside")
		default:
		}
		if s := h.door.Stats(); s != (Stats{Waiting: 4, Underway: 1, Dropped: 1}) {
			t.Errorf("%+v", s)
		}
		for _, c := range []net.Conn{greedy[0], greedy[1]} {
			if err := talks(c); err != nil {
				t.Error(err)
			}
		}
		if err := talks(other); err != nil {
			t.Error(err)
		}
		if err := talks(<-third); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for i, want := range []string{"10.0.0.1:1", "10.0.0.1:1", "10.0.0.2:1", "10.0.0.1:1", "10.0.0.3:1"} {
			if i >= len(h.order) || h.order[i] != want {
				t.Fatal(h.order)
			}
		}
	})
}

// Errors of the listener reach who serves, one by one, and it goes on.
func TestListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Waiting: 4, Underway: 4, Computing: 1})
		for range 3 {
			h.pipes.errs <- errors.New("too many open files")
		}
		if err := talks(h.come("10.0.0.1")); err != nil {
			t.Error(err)
		}
	})
}

// Whose client has hung up while it waited costs no handshake.
func TestHungUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if server, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	stays, here := dial()
	defer stays.Close()
	defer here.Close()
	leaves, there := dial()
	defer there.Close()
	if _, err := leaves.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	leaves.Close()
	if _, err := io.ReadFull(there, make([]byte, 5)); err != nil { // it has come, and what follows it
		t.Fatal(err)
	}
	if _, err := there.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	if !hungUp(there) || hungUp(here) {
		t.Error("who has hung up:", hungUp(there), hungUp(here))
	}
}
