package testnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
)

// Forward has what Host dials at the address of a Service end up at target, both host:port, as kube-proxy would. It
// lasts as long as the test.
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
	l, err := net.Listen("tcp", service)
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
			all.Go(func() { join(t.Context(), conn, target) })
		}
	})
}

// join copies both ways until either side ends, or the test.
func join(ctx context.Context, conn net.Conn, target string) {
	defer conn.Close()
	other, err := net.Dial("tcp", target)
	if err != nil {
		return // who has dialled sees that nobody is there
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
