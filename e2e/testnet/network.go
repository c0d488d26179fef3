package testnet

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

const (
	bridgeName = "mesh0"
	// ServiceRange holds all service addresses, as the API server is told.
	ServiceRange = "10.96.0.0/12"
	// Host is the address of everything that is no pod: pilotd and servers of the test.
	Host = "10.244.0.1"
	// ServerName is the name under which pods look for the control plane, at Host.
	ServerName = "istiod.istio-system.svc"
	// podBits is the length of the prefix that Host and all pods share.
	podBits = 16
)

// Network is the bridge that joins the pods. There is one at a time.
type Network struct {
	// Immutable after New.
	bridge netlink.Link
	// Owned by the test's goroutine.
	pods int
}

// New makes the network; it is gone when the test ends.
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
	if err := startDNS(t); err != nil {
		t.Fatalf("test network: %v", err)
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
	addr, err := netlink.ParseAddr(fmt.Sprintf("%s/%d", Host, podBits))
	if err != nil {
		return nil, err
	}
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		return nil, fmt.Errorf("bridge address: %w", err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	return &Network{bridge: bridge}, nil
}
