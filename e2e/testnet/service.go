package testnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
)

// Forward redirects what Host dials at the address of a Service to target, as kube-proxy would; both are host:port. It
// lasts until the end of the test.
func (n *Network) Forward(t testing.TB, service, target string) {
	t.Helper()
	host, _, err := net.SplitHostPort(service)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := netlink.ParseAddr(host + "/32")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrReplace(n.bridge, addr); err != nil {
		t.Fatalf("test network: the address of a Service: %v", err)
	}
	StartRelay(t, service, target)
}

// Relay is an address whose connections are forwarded to another one, as those of a Service are.
type Relay struct{ target atomic.Pointer[string] }

// StartRelay listens at an address until the end of the test, and forwards connections to target; both are host:port.
func StartRelay(t testing.TB, at, target string) *Relay {
	t.Helper()
	r := &Relay{}
	r.To(target)
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(fmt.Errorf("test network: %w", err))
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(t.Context(), conn, *r.target.Load()) })
		}
	})
	return r
}

// To makes new connections go to another target. Open ones stay.
func (r *Relay) To(target string) { r.target.Store(&target) }

// join copies in both directions until either side, or the test, ends.
func join(ctx context.Context, conn net.Conn, target string) {
	defer conn.Close()
	other, err := net.Dial("tcp", target)
	if err != nil {
		return // closing tells the client that there is no server
	}
	stop := context.AfterFunc(ctx, func() {
		conn.Close()
		other.Close()
	})
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(other, conn)
		other.Close()
	}()
	_, _ = io.Copy(conn, other)
	conn.Close()
	<-done
}
