package testnet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// appMark marks the sockets that Pod.DialContext opens. Proxies use another mark, 1337.
const appMark = 0x6170

// Pod is an address with a network namespace of its own.
type Pod struct {
	// Immutable after Network.Pod.
	IP string
	ns netns.NsHandle
}

// Pod adds a pod with that address. It is removed at the end of the test.
func (n *Network) Pod(t testing.TB, ip string) *Pod {
	t.Helper()
	n.pods++
	name := fmt.Sprintf("pod%d", n.pods)
	p, err := n.newPod(ip, name)
	if err != nil {
		t.Fatalf("pod %s: %v", ip, err)
	}
	t.Cleanup(func() {
		// Closing the handle does not remove the namespace while it contains a socket.
		if link, err := netlink.LinkByName(name); err == nil {
			_ = netlink.LinkDel(link)
		}
		_ = p.ns.Close()
	})
	return p
}

func (n *Network) newPod(ip, link string) (*Pod, error) {
	ns, err := newNamespace()
	if err != nil {
		return nil, err
	}
	p := &Pod{IP: ip, ns: ns}
	if err := n.plug(p, link); err != nil {
		_ = ns.Close()
		return nil, err
	}
	return p, nil
}

// plug connects the pod to the bridge, and configures its address and its default route.
func (n *Network) plug(p *Pod, link string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = link
	attrs.MasterIndex = n.bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(p.ns)}
	// The hardware address follows from the IP address, so that a pod that comes back is the same neighbour.
	veth.PeerHardwareAddr = append(net.HardwareAddr{2, 0}, net.ParseIP(p.IP).To16()[12:]...)
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	h, err := netlink.NewHandleAt(p.ns)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := loopbackUp(h); err != nil {
		return err
	}
	eth, err := h.LinkByName("eth0")
	if err != nil {
		return err
	}
	addr, err := podAddress(p.IP)
	if err != nil {
		return err
	}
	if err := h.AddrAdd(eth, addr); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := h.LinkSetUp(eth); err != nil {
		return err
	}
	gateway := Host
	if isIPv6(p.IP) {
		gateway = Host6
	}
	return h.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: net.ParseIP(gateway)})
}

// newNamespace makes a network namespace without leaving the caller's.
func newNamespace() (netns.NsHandle, error) {
	var made netns.NsHandle
	here, err := netns.Get()
	if err != nil {
		return made, err
	}
	defer here.Close()
	err = within(here, func() error {
		made, err = netns.New()
		return err
	})
	return made, err
}

// within runs f on a thread that has entered ns, and restores the thread afterwards.
func within(ns netns.NsHandle, f func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := netns.Set(ns); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	ferr := f()
	if err := netns.Set(home); err != nil {
		return err // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return ferr
}

// Listen listens inside the pod. An address without a host means the wildcard.
func (p *Pod) Listen(addr string) (l net.Listener, err error) {
	err = within(p.ns, func() error {
		network := "tcp4"
		if isIPv6(p.IP) {
			network = "tcp6"
		}
		l, err = net.Listen(network, addr)
		return err
	})
	return l, err
}

// DialContext connects in the same way as an application in the pod: through the pod's sidecar, if Capture was called.
// The address must be numeric: with a single address to try, the dialer opens its socket on the calling thread, which
// has entered the pod's namespace.
func (p *Pod) DialContext(ctx context.Context, network, addr string) (c net.Conn, err error) {
	d := net.Dialer{Timeout: 5 * time.Second, Control: markSocket}
	err = within(p.ns, func() error {
		c, err = d.DialContext(ctx, network, addr)
		return err
	})
	return c, err
}

func markSocket(_, _ string, raw syscall.RawConn) error {
	var err error
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, appMark)
	})
	if cerr != nil {
		return cerr
	}
	return err
}

// Client returns an HTTP client of an application in the pod; each request has a
// connection of its own.
func (p *Pod) Client() *http.Client {
	return &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DialContext: p.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// Start starts a program inside the pod.
func (p *Pod) Start(cmd *exec.Cmd) error {
	return within(p.ns, cmd.Start)
}
