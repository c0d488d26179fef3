package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// transparent lets a socket have addresses that are not this machine's, and marks what it sends.
func transparent(mark int) func(string, string, syscall.RawConn) error {
	return func(network, _ string, raw syscall.RawConn) error {
		level, option := unix.SOL_IP, unix.IP_TRANSPARENT
		if network == "tcp6" {
			level, option = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
		}
		var err error
		if cerr := raw.Control(func(fd uintptr) {
			if err = unix.SetsockoptInt(int(fd), level, option, 1); err == nil && mark != 0 {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark)
			}
		}); cerr != nil {
			return cerr
		}
		return err
	}
}

// proxy stands for Envoy with the filter of original sources: it calls where a connection was meant to go from the
// address that it came from, and says that it was there.
func proxy(t *testing.T, mark uint32) {
	t.Helper()
	listening := net.ListenConfig{Control: transparent(0)}
	l, err := listening.Listen(t.Context(), "tcp4", ":15006")
	if err != nil {
		t.Fatal(err)
	}
	answer(t, l, func(c net.Conn) string {
		from := &net.TCPAddr{IP: c.RemoteAddr().(*net.TCPAddr).IP}
		d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: from, Control: transparent(int(mark))}
		return "proxy, " + hear(d.Dial("tcp4", meant(c)))
	})
}

// meant is where a connection was meant to go: where it ends, unless it was redirected.
func meant(c net.Conn) string {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err.Error()
	}
	to := ""
	cerr := raw.Control(func(fd uintptr) {
		const originalDestination = 80 // SO_ORIGINAL_DST
		var a *unix.IPv6Mreq           // has room for an address of IPv4
		if a, err = unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, originalDestination); err == nil {
			to = fmt.Sprintf("%s:%d", net.IP(a.Multiaddr[4:8]), binary.BigEndian.Uint16(a.Multiaddr[2:4]))
		}
	})
	if err = errors.Join(cerr, err); err != nil {
		return err.Error()
	}
	return to
}

// unbridged has packets for this namespace, whose interface is a bridge, pass the rules as IP packets alone. Otherwise
// they pass them as the bridge's, and the kernel forgets what TPROXY has chosen for them. Pods have no bridge.
func unbridged(t *testing.T) {
	t.Helper()
	err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// application says from where it is called.
func application(t *testing.T, l net.Listener, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	answer(t, l, func(c net.Conn) string { return fmt.Sprint("called from ", c.RemoteAddr().(*net.TCPAddr).IP) })
}

// With TPROXY the proxy sees where a connection was meant to go, and the application from where it came: answers to an
// address elsewhere stay in the pod. What the pod opens is captured as with REDIRECT.
func TestTransparent(t *testing.T) {
	network := testnet.New(t)
	unbridged(t)
	w := &net2{t, network.Pod(t, "10.244.1.1"), network.Pod(t, "10.244.2.1")}
	c := usual()
	c.Mode, c.Mark, c.RouteTable, c.ExcludeRanges = "TPROXY", 1337, 133, ""
	proxy(t, c.Mark)
	w.here(":15001", "outbound")
	w.here(":15020", "agent")
	l, err := net.Listen("tcp4", ":8080")
	application(t, l, err)
	w.want("before", w.in(testnet.Host+":8080"), "called from 10.244.1.1")
	w.apply(c)
	w.apply(c) // again leaves the same
	t.Cleanup(func() {
		if err := Remove(c); err != nil {
			t.Error(err)
		}
	})
	w.want("inbound", w.in(testnet.Host+":8080"), "proxy, called from 10.244.1.1")
	w.want("excluded inbound port", w.in(testnet.Host+":15020"), "agent")
	w.want("outbound", w.out("10.244.1.1:80"), "outbound")
	w.want("itself", w.out(testnet.Host+":8080"), "called from "+testnet.Host)
	if testnet.Users() {
		w.want("the proxy's own call of its pod", w.as(1337, testnet.Host+":8080"), "proxy, called from "+testnet.Host)
	}
	if n := markRules(t, c); n != 1 {
		t.Error(n, "rules of routing, want 1")
	}
	c.InboundPorts = "9999"
	w.apply(c)
	w.want("a port that is not included", w.in(testnet.Host+":8080"), "called from 10.244.1.1")
	c.Mode = "REDIRECT"
	w.apply(c)
	if n := markRules(t, c); n != 0 {
		t.Error(n, "rules of routing are left")
	}
}

// markRules is how many rules of routing there are for the mark.
func markRules(t *testing.T, c Config) (n int) {
	t.Helper()
	all, err := netlink.RuleList(unix.AF_INET)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Mark == c.Mark && r.Table == int(c.RouteTable) {
			n++
		}
	}
	return n
}
