package testnet_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// answer serves one word per connection.
func answer(t *testing.T, p *testnet.Pod, addr, word string) {
	t.Helper()
	l, err := p.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word)
			_ = c.Close()
		}
	}()
}

func ask(t *testing.T, p *testnet.Pod, addr string) string {
	t.Helper()
	c, err := p.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestPodsReachEachOther(t *testing.T) {
	network := testnet.New(t)
	a, b := network.Pod(t, "10.244.1.1"), network.Pod(t, "10.244.1.2")
	answer(t, a, ":8080", "a")
	answer(t, b, ":8080", "b")
	if got := ask(t, a, "10.244.1.2:8080"); got != "b" {
		t.Errorf("a asked b, %q answered", got)
	}
	if got := ask(t, b, "10.244.1.1:8080"); got != "a" {
		t.Errorf("b asked a, %q answered", got)
	}
}

func TestCapture(t *testing.T) {
	network := testnet.New(t)
	a, b := network.Pod(t, "10.244.1.1"), network.Pod(t, "10.244.1.2")
	answer(t, a, ":15001", "outbound")
	answer(t, b, ":15006", "inbound")
	answer(t, b, ":8080", "application")
	answer(t, b, ":15000", "admin")
	if err := a.Capture(); err != nil {
		t.Fatal(err)
	}
	if err := b.Capture(15000); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{"10.96.0.10:80": "outbound", "10.244.1.2:8080": "outbound"} {
		if got := ask(t, a, addr); got != want {
			t.Errorf("an application's connection to %s reached %q, want %q", addr, got, want)
		}
	}
	for addr, want := range map[string]string{"10.244.1.2:8080": "inbound", "10.244.1.2:15000": "admin"} {
		if got := plain(t, addr); got != want {
			t.Errorf("a connection from outside to %s reached %q, want %q", addr, got, want)
		}
	}
}

// plain connects from outside all pods.
func plain(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestResolverAnswersThatNoNameExists(t *testing.T) {
	testnet.New(t)
	start := time.Now()
	_, err := (&net.Resolver{PreferGo: true}).LookupHost(t.Context(), "web.example.com")
	var failed *net.DNSError
	if !errors.As(err, &failed) || !failed.IsNotFound {
		t.Errorf("%v, want that the name does not exist", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("the resolver took %v", took)
	}
}
