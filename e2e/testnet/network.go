package testnet

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	bridgeName = "mesh0"
	// ServiceRange contains all service addresses; the API server gets it as a flag.
	ServiceRange = "10.96.0.0/12"
	// Host is the address of everything outside of pods: pilotd and servers of the test.
	Host = "10.244.0.1"
	// Host6 is its IPv6 address, if the machine has IPv6.
	Host6 = "fd00:10:244::1"
	// ServerName is the name by which pods find the control plane, at Host.
	ServerName = "istiod.istio-system.svc"
	// podBits and podBits6 are the lengths of the prefixes that Host and Host6 share with all pods.
	podBits, podBits6 = 16, 64
)

// Network is the bridge that connects the pods. There is only one at a time.
type Network struct {
	// Immutable after New.
	bridge netlink.Link
	// IPv6 says whether pods can have IPv6 addresses.
	IPv6 bool
	// Owned by the test's goroutine.
	pods int
}

// New creates the network. It is removed at the end of the test.
func New(t testing.TB) *Network {
	t.Helper()
	n, err := newNetwork()
	if err != nil {
		t.Fatalf("test network: %v", err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(n.bridge); err != nil {
			t.Errorf("test network: %v", err)
		}
	})
	for host, is := range map[string]bool{Host: true, Host6: n.IPv6} {
		if !is {
			continue
		}
		if err := startDNS(t, host); err != nil {
			t.Fatalf("test network: %v", err)
		}
	}
	return n
}

func newNetwork() (*Network, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	addr, err := podAddress(Host)
	if err != nil {
		return nil, err
	}
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		return nil, fmt.Errorf("bridge address: %w", err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	n := &Network{bridge: bridge}
	if _, err := os.Stat("/proc/net/if_inet6"); err == nil {
		addr, err := podAddress(Host6)
		if err != nil {
			return nil, err
		}
		n.IPv6 = netlink.AddrAdd(bridge, addr) == nil // the kernel may have IPv6 and forbid it
	}
	return n, nil
}

// podAddress is a pod's address with its prefix.
func podAddress(ip string) (*netlink.Addr, error) {
	bits := podBits
	if isIPv6(ip) {
		bits = podBits6
	}
	a, err := netlink.ParseAddr(fmt.Sprintf("%s/%d", ip, bits))
	if err == nil && isIPv6(ip) {
		a.Flags = unix.IFA_F_NODAD // skip duplicate address detection, which takes seconds
	}
	return a, err
}

func isIPv6(ip string) bool { return strings.Contains(ip, ":") }
