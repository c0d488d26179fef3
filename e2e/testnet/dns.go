package testnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// resolvConf tells C libraries and Envoy which resolver to use.
const resolvConf = "/etc/resolv.conf"

// useOwnResolver makes every process in the mount namespace use the resolver at Host, and not those of the machine,
// which no pod can reach. On a machine without the file nothing is needed: processes then ask their own loopback
// address, which refuses at once.
func useOwnResolver() error {
	f, err := os.CreateTemp("", "resolv.conf")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString("nameserver " + Host + "\nnameserver " + Host6 + "\n"); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil { // programs run as different users
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	err = unix.Mount(f.Name(), resolvConf, "", unix.MS_BIND, "")
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("mount over %s: %w", resolvConf, err)
	}
	return nil
}

// startDNS serves the resolver of the network on port 53 of a host until the test ends. It knows ServerName, and
// answers at once that any other name does not exist, as a cluster's resolver does for a name that nobody has. An
// Envoy that starts waits until the first name of each cluster of type STRICT_DNS or LOGICAL_DNS is resolved, or known
// not to exist: without an answer it would wait a minute, until its queries time out.
func startDNS(t testing.TB, host string) error {
	c, err := net.ListenPacket("udp", net.JoinHostPort(host, "53"))
	if err != nil {
		return fmt.Errorf("DNS: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serveDNS(c)
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-ended
	})
	return nil
}

// serveDNS answers queries until the socket is closed. It ignores packets that are not queries.
func serveDNS(c net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if answer, err := answerTo(buffer[:n]); err == nil {
			_, _ = c.WriteTo(answer, from)
		}
	}
}

// answerTo returns the answer to a query: the addresses Host and Host6 for ServerName, and for any other name that it
// does not exist.
func answerTo(query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	questions, err := p.AllQuestions()
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{
		ID: header.ID, Response: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		RCode: dnsmessage.RCodeNameError,
	}, Questions: questions}
	if len(questions) != 1 || questions[0].Name.String() != ServerName+"." {
		return m.Pack()
	}
	m.RCode = dnsmessage.RCodeSuccess
	bodies := map[dnsmessage.Type]dnsmessage.ResourceBody{
		dnsmessage.TypeA:    &dnsmessage.AResource{A: netip.MustParseAddr(Host).As4()},
		dnsmessage.TypeAAAA: &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(Host6).As16()},
	}
	if body, ok := bodies[questions[0].Type]; ok {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: questions[0].Name,
			Class: dnsmessage.ClassINET, TTL: 30}, Body: body}}
	}
	return m.Pack()
}
