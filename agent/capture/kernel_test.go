package capture

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// say has a listener say its name to everybody.
func say(t *testing.T, name string, l net.Listener, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(name, err)
	}
	answer(t, l, func(net.Conn) string { return name })
}

// answer has a listener say something to each who connects, until the test ends.
func answer(t *testing.T, l net.Listener, what func(net.Conn) string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(what(c)))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

func (w *net2) here(address, name string) {
	w.t.Helper()
	l, err := net.Listen("tcp", address)
	say(w.t, name, l, err)
}

// net2 is this network namespace, whose traffic is captured, and two pods.
type net2 struct {
	t    *testing.T
	a, b *testnet.Pod
}

func newNet2(t *testing.T) *net2 {
	network := testnet.New(t)
	w := &net2{t, network.Pod(t, "10.244.1.1"), network.Pod(t, "10.244.2.1")}
	for _, p := range []*testnet.Pod{w.a, w.b} {
		for _, port := range []string{":80", ":3306", ":9000"} {
			l, err := p.Listen(port)
			say(t, p.IP+port, l, err)
		}
	}
	w.here(":15001", "outbound")
	w.here(":15006", "inbound")
	w.here(":8080", "application")
	w.here(":15020", "agent")
	t.Cleanup(func() {
		if err := Remove(usual()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// out is who answers a process of this namespace.
func (w *net2) out(to string) string { return hear(net.DialTimeout("tcp", to, 5*time.Second)) }

// in is who answers a pod that connects to this namespace.
func (w *net2) in(to string) string {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	return hear(w.a.DialContext(ctx, "tcp", to))
}

// as is who answers a process of a user.
func (w *net2) as(user uint32, to string) string {
	w.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), dialEnv+"="+to)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	said, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatal(err, string(said))
	}
	return string(said)
}

func usual() Config {
	return Config{OutboundPort: 15001, InboundPort: 15006, TunnelPort: 15008, DNSPort: 15053, UIDs: "1337",
		Mode: "REDIRECT", IncludeRanges: "*", ExcludeRanges: "10.244.2.0/24", ExcludePorts: "3306", InboundPorts: "*",
		ExcludeInboundPorts: "15020,15021"}
}

func (w *net2) apply(c Config) {
	w.t.Helper()
	if err := Apply(c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *net2) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: %q answers, want %q", what, got, want)
	}
}

// What is opened and what arrives goes to the proxy, but for what the configuration leaves out.
func TestCapture(t *testing.T) {
	w := newNet2(t)
	w.want("before", w.out("10.244.1.1:80"), "10.244.1.1:80")
	w.apply(usual())
	w.want("outbound", w.out("10.244.1.1:80"), "outbound")
	w.want("excluded port", w.out("10.244.1.1:3306"), "10.244.1.1:3306")
	w.want("excluded range", w.out("10.244.2.1:80"), "10.244.2.1:80")
	w.want("loopback", w.out("127.0.0.1:8080"), "application")
	w.want("itself", w.out(testnet.Host+":8080"), "application")
	w.want("inbound", w.in(testnet.Host+":8080"), "inbound")
	w.want("excluded inbound port", w.in(testnet.Host+":15020"), "agent")
	if testnet.Users() {
		w.want("the proxy's own", w.as(1337, "10.244.1.1:80"), "10.244.1.1:80")
		w.want("the proxy's own call of its pod", w.as(1337, testnet.Host+":8080"), "inbound")
		w.want("the proxy to its application", w.as(1337, "127.0.0.1:8080"), "application")
		w.want("another user", w.as(1000, "10.244.1.1:80"), "outbound")
		w.ownerGroups()
	} else {
		t.Log("there is one user here: that the proxy's own traffic passes is not tried")
	}

	c := usual()
	c.IncludeRanges, c.IncludePorts, c.InboundPorts = "10.244.2.0/24", "9000", "9999"
	c.ExcludeRanges = ""
	w.apply(c)
	w.want("a range that is not included", w.out("10.244.1.1:80"), "10.244.1.1:80")
	w.want("an included port", w.out("10.244.1.1:9000"), "outbound")
	w.want("an included range", w.out("10.244.2.1:80"), "outbound")
	w.want("a port that is not included", w.in(testnet.Host+":8080"), "application")

	c.ExcludeInterfaces = "mesh0"
	w.apply(c)
	w.want("an interface that is left alone", w.out("10.244.2.1:80"), "10.244.2.1:80")
	c.ExcludeInterfaces, c.VirtualInterfaces, c.IncludeRanges, c.DropInvalid = "", "mesh0", "*", true
	w.apply(c)
	w.want("an interface of virtual machines", w.in(testnet.Host+":8080"), "outbound")

	if err := Remove(usual()); err != nil {
		t.Fatal(err)
	}
	w.want("after", w.out("10.244.1.1:80"), "10.244.1.1:80")
	w.want("after", w.in(testnet.Host+":8080"), "application")
}

// ownerGroups has some groups' traffic captured and others' not.
func (w *net2) ownerGroups() {
	c := usual()
	c.OwnerGroups, c.ExcludeOwnerGroups = "*", "1000"
	w.apply(c)
	w.want("an excluded group", w.as(1000, "10.244.1.1:80"), "10.244.1.1:80")
	w.want("another group", w.as(1001, "10.244.1.1:80"), "outbound")
	c.OwnerGroups = "1000,1001"
	w.apply(c)
	w.want("a group that is excluded of those included", w.as(1000, "10.244.1.1:80"), "10.244.1.1:80")
	w.want("an included group", w.as(1001, "10.244.1.1:80"), "outbound")
	w.want("a group that is not included", w.as(1002, "10.244.1.1:80"), "10.244.1.1:80")
}

// Writing the rules again leaves the same rules, and nothing of what was before.
func TestApplyAgain(t *testing.T) {
	testnet.New(t)
	count := func() (n int) {
		conn, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		chains, err := conn.ListChains()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chains {
			rules, err := conn.GetRules(c.Table, c)
			if err != nil {
				t.Fatal(err)
			}
			n += len(rules)
		}
		return n
	}
	c := usual()
	c.DNS, c.Nameservers, c.DropInvalid = true, []netip.Addr{netip.MustParseAddr("10.244.1.1")}, true
	c.IPv6 = true
	want := 0
	for _, v6 := range families(c) {
		rules, err := Rules(c, v6)
		if err != nil {
			t.Fatal(err)
		}
		want += len(rules)
	}
	for range 2 {
		if err := Apply(c); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != want {
			t.Errorf("the kernel has %d rules, want %d", got, want)
		}
	}
	for range 2 { // nothing is nothing
		if err := Remove(c); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(); got != 0 {
		t.Error(got, "rules are left")
	}
}

// Queries to the pod's server go to the agent, and its own reach the server.
func TestQueries(t *testing.T) {
	if !testnet.Users() {
		t.Skip("there is one user here, who cannot be agent and application")
	}
	w := newNet2(t)
	var agent, query net.PacketConn
	asUser(t, 1337, func() {
		var err error
		if agent, err = net.ListenPacket("udp", "127.0.0.1:15053"); err == nil {
			query, err = net.ListenPacket("udp", ":0")
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	defer query.Close()
	defer echoUDP(agent, "agent")()
	c := usual()
	c.DNS, c.Nameservers = true, []netip.Addr{netip.MustParseAddr(testnet.Host)}
	w.apply(c)
	if got := askUDP(t, testnet.Host+":53"); got != "agent" {
		t.Errorf("%q answers", got)
	}
	// The server is testnet's resolver, which says of each name that there is none.
	_ = query.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := query.WriteTo([]byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01"),
		&net.UDPAddr{IP: net.ParseIP(testnet.Host), Port: 53}); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	if n, _, err := query.ReadFrom(buffer); err != nil || string(buffer[:2]) != "\x12\x34" {
		t.Errorf("%q answers the agent, %v", buffer[:n], err)
	}
	w.here("127.0.0.1:15053", "agent over TCP")
	w.want("over TCP", w.out(testnet.Host+":53"), "agent over TCP")
}

// asUser runs f with sockets that are a user's.
func asUser(t *testing.T, id int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, set := range []func(int) (int, error){unix.SetfsgidRetGid, unix.SetfsuidRetUid} {
		if _, err := set(id); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = set(0) }()
	}
	f()
}

// echoUDP answers each packet with a name, until the returned function is called.
func echoUDP(c net.PacketConn, name string) func() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 100)
		for {
			_, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = c.WriteTo([]byte(name), from)
		}
	}()
	return func() { c.Close(); <-done }
}

func askUDP(t *testing.T, to string) string {
	t.Helper()
	c, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	n, err := c.Read(buffer)
	if err != nil {
		return err.Error()
	}
	return string(buffer[:n])
}

// A Probe meets itself where its connection is captured, and says so where it is not.
func TestProbe(t *testing.T) {
	network := testnet.New(t)
	pod := network.Pod(t, "10.244.1.1")
	l, err := pod.Listen(":80")
	say(t, "pod", l, err)
	if got := hear(net.DialTimeout("tcp", "10.244.1.1:80", 10*time.Second)); got != "pod" {
		t.Fatal(got) // the network is new
	}
	c := usual()
	for to, want := range map[string]string{"10.244.1.1:80": "somebody else", "10.244.1.1:81": "refused"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := Probe(ctx, netip.MustParseAddrPort(to), c.InboundPort, c.OutboundPort); !errors.Is(err, ErrNotCaptured) ||
			!strings.Contains(err.Error(), want) {
			t.Error(to, err)
		}
	}
	if err := Apply(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(c); err != nil {
			t.Error(err)
		}
	})
	if err := Probe(t.Context(), netip.MustParseAddrPort("10.244.1.1:81"), c.InboundPort, c.OutboundPort); err != nil {
		t.Error(err)
	}
	taken, err := net.Listen("tcp", ":15001")
	say(t, "somebody", taken, err)
	if err := Probe(t.Context(), netip.MustParseAddrPort("10.244.1.1:81"), c.OutboundPort); err == nil {
		t.Error("it has listened where somebody does")
	}
}
