package kube

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate is a TCP relay to a server, to take the server away.
type gate struct {
	t      *testing.T
	target string
	addr   string
	relays sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	listener net.Listener
	conns    map[net.Conn]bool
}

func newGate(t *testing.T, target string) *gate {
	g := &gate{t: t, target: target, addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	g.open()
	t.Cleanup(g.shut)
	return g
}

// open lets connections through, at the same address every time.
func (g *gate) open() {
	g.t.Helper()
	l, err := net.Listen("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	g.listener, g.addr = l, l.Addr().String()
	g.mu.Unlock()
	g.relays.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.relays.Go(func() { g.relay(c) })
		}
	})
}

// shut refuses connections and cuts those that there are.
func (g *gate) shut() {
	g.mu.Lock()
	_ = g.listener.Close()
	for c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.relays.Wait()
}

func (g *gate) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer server.Close()
	g.hold(client, server)
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	up.Wait()
}

func (g *gate) hold(conns ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		g.conns[c] = true
	}
}
