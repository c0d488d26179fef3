package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
)

// table is one as control planes send it.
func table() *ndsv1.NameTable {
	type info = ndsv1.NameTable_NameInfo
	return &ndsv1.NameTable{Table: map[string]*info{
		"web.shop.svc.cluster.local": {Ips: []string{"10.96.0.1", "fd00::1"}, Registry: "Kubernetes", Shortname: "web",
			Namespace: "shop"},
		"till.bank.svc.cluster.local": {Ips: []string{"10.96.0.2"}, Registry: "Kubernetes", Shortname: "till", Namespace: "bank"},
		"till.bank":                   {Ips: []string{"10.9.9.9"}, Registry: "External"},
		"ext.example.com.":            {Ips: []string{"240.1.1.1", "240.1.1.2", "10.0.0.0/8"}, Registry: "External"},
		"*.wild.example.com":          {Ips: []string{"240.1.2.1"}, Registry: "External"},
		"*.a.wild.example.com":        {Ips: []string{"240.1.2.2"}, Registry: "External"},
		"range.example.com":           {Ips: []string{"10.0.0.0/8"}, Registry: "External"},
		"*":                           {Ips: []string{"6.6.6.6"}, Registry: "External"},
		"both.clusterset.local":       {Ips: []string{"240.1.3.1"}, Registry: "Kubernetes"},
	}}
}

// Each form of a name leads to its addresses, and no other name does.
func TestLookup(t *testing.T) {
	n := Compile(table(), DomainOf("shop", "shop.svc.cluster.local"))
	const search = "shop.svc.cluster.local"
	for name, want := range map[string]string{
		"web.shop.svc.cluster.local.": "10.96.0.1 fd00::1", "web.shop.svc.": "10.96.0.1 fd00::1",
		"web.shop.": "10.96.0.1 fd00::1", "WEB.": "10.96.0.1 fd00::1",
		"till.bank.svc.": "10.96.0.2", "till.bank.": "10.9.9.9", "till.": "",
		"ext.example.com.": "240.1.1.1 240.1.1.2", "ext.example.com.shop.svc.cluster.local.": "=ext.example.com 240.1.1.1 240.1.1.2",
		"till.bank.shop.svc.cluster.local.":             "=till.bank 10.9.9.9",
		"x.wild.example.com.":                           "240.1.2.1",
		"y.x.wild.example.com.":                         "240.1.2.1",
		"y.a.wild.example.com.":                         "240.1.2.2",
		"wild.example.com.":                             "",
		"z.wild.example.com.shop.svc.cluster.local.":    "=z.wild.example.com 240.1.2.1",
		"range.example.com.":                            "",
		"google.com.":                                   "",
		"word.shop.svc.cluster.local.":                  "",
		"both.clusterset.local.":                        "240.1.3.1",
		"web.shop.svc.cluster.local.svc.cluster.local.": "", ".": "",
	} {
		got := ""
		if f, ok := n.Lookup(name, search); ok {
			if f.Alias != "" {
				got = "=" + f.Alias + " "
			}
			var all []string
			for _, a := range f.Addresses {
				all = append(all, a.String())
			}
			got += strings.Join(all, " ")
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if text := string(n.JSON()); !strings.Contains(text, `"*.wild.example.com"`) || strings.Contains(text, "6.6.6.6") {
		t.Error(text)
	}
}

// Of two hosts with one short form the one of the pod's own namespace has it, each time.
func TestShortFormOfTwo(t *testing.T) {
	type info = ndsv1.NameTable_NameInfo
	all := &ndsv1.NameTable{Table: map[string]*info{
		"db-0.db.svc.cluster.local": {Ips: []string{"10.96.0.1"}, Registry: kubernetes, Shortname: "db-0", Namespace: "db"},
		"db-0.db.shop.svc.cluster.local": {Ips: []string{"10.1.0.1"}, Registry: kubernetes, Shortname: "db-0.db",
			Namespace: "shop"},
	}}
	for namespace, want := range map[string]string{"shop": "10.1.0.1", "db": "10.96.0.1", "other": "10.96.0.1"} {
		for range 20 {
			n := Compile(all, Domain{Namespace: namespace, Services: "svc.cluster.local"})
			if f, ok := n.Lookup("db-0.db.", ""); !ok || f.Addresses[0].String() != want {
				t.Fatalf("from %s it is %v, want %s", namespace, f, want)
			}
		}
	}
}

// listen has a server listen at a port that is free for TCP and UDP, until the test ends.
func listen(t *testing.T, s *Server) string {
	t.Helper()
	for tries := 10; ; tries-- { // somebody else may take the port first
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		stop, err := s.Listen(address)
		if err == nil {
			t.Cleanup(stop)
			return address
		}
		if tries == 0 {
			t.Fatal(err)
		}
	}
}

// elsewhere is a server that knows one name, with so many addresses.
func elsewhere(t *testing.T, addresses int) string {
	t.Helper()
	s := New(Domain{}, &Resolver{Log: slog.New(slog.DiscardHandler)}, slog.New(slog.DiscardHandler))
	info := &ndsv1.NameTable_NameInfo{}
	for i := range addresses {
		info.Ips = append(info.Ips, fmt.Sprintf("10.%d.%d.1", i/250, i%250))
	}
	s.Take(&ndsv1.NameTable{Table: map[string]*ndsv1.NameTable_NameInfo{"elsewhere.example": info}})
	return listen(t, s)
}

// serve serves a pod's names; servers are those of its resolv.conf, all at one port.
func serve(t *testing.T, server string) (*Server, string) {
	t.Helper()
	r := &Resolver{Log: slog.New(slog.DiscardHandler)}
	r.current.Store(&settings{search: "shop.svc.cluster.local", servers: []string{"127.0.0.1:1", server}})
	s := New(DomainOf("shop", "shop.svc.cluster.local"), r, slog.New(slog.DiscardHandler))
	return s, listen(t, s)
}

func ask(t *testing.T, network, address, name string, kind uint16) *mdns.Msg {
	t.Helper()
	c := &mdns.Client{Net: network, Timeout: 20 * time.Second}
	q := new(mdns.Msg).SetQuestion(name, kind)
	got, _, err := c.Exchange(q, address)
	if err != nil {
		t.Fatal(network, name, err)
	}
	return got
}

// Over UDP and TCP names of the mesh come from the table and others from elsewhere; before there is a table all fail,
// and an empty one leaves no name.
func TestServer(t *testing.T) {
	server := elsewhere(t, 2)
	s, address := serve(t, server)
	if got := ask(t, "udp", address, "elsewhere.example.", mdns.TypeA); got.Rcode != mdns.RcodeServerFailure || s.Ready() {
		t.Error("there is an answer before there is a table:", got)
	}
	s.Take(table())
	for _, network := range []string{"udp", "tcp"} {
		got := ask(t, network, address, "Web.", mdns.TypeA)
		if !got.Authoritative || len(got.Answer) != 1 || got.Answer[0].Header().Ttl != 30 ||
			got.Answer[0].Header().Name != "Web." || got.Answer[0].(*mdns.A).A.String() != "10.96.0.1" {
			t.Error(network, got)
		}
		if got := ask(t, network, address, "web.", mdns.TypeAAAA); len(got.Answer) != 1 ||
			got.Answer[0].(*mdns.AAAA).AAAA.String() != "fd00::1" {
			t.Error(network, got)
		}
		if got := ask(t, network, address, "ext.example.com.", mdns.TypeAAAA); got.Rcode != mdns.RcodeSuccess ||
			len(got.Answer) != 0 || !got.Authoritative {
			t.Error("a name without that family:", got)
		}
		got = ask(t, network, address, "ext.example.com.shop.svc.cluster.local.", mdns.TypeA)
		if len(got.Answer) != 3 || got.Answer[0].(*mdns.CNAME).Target != "ext.example.com." ||
			got.Answer[1].Header().Name != "ext.example.com." {
			t.Error(network, got)
		}
		if got := ask(t, network, address, "elsewhere.example.", mdns.TypeA); len(got.Answer) != 2 {
			t.Error(network, "the second server is not asked:", got)
		}
	}
	s.Take(&ndsv1.NameTable{})
	if got := ask(t, "udp", address, "ext.example.com.", mdns.TypeA); got.Rcode != mdns.RcodeServerFailure || !s.Ready() {
		t.Error("a name is left:", got) // elsewhere has nobody to ask
	}
	if n := s.Counts.Queries.Load(); n != 12 {
		t.Error(n, "queries")
	}
}

// TestAllAtOnce asks a server that is silent, one that answers when the third has been asked, and the third.
func TestAllAtOnce(t *testing.T) {
	open := func() net.PacketConn {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	first, second, third := open(), open(), open()
	server := &mdns.Server{PacketConn: second, Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, q *mdns.Msg) {
		var b [512]byte
		if _, _, err := third.ReadFrom(b[:]); err == nil {
			_ = w.WriteMsg(new(mdns.Msg).SetReply(q))
		}
	})}
	go func() { _ = server.ActivateAndServe() }()
	r := &Resolver{Log: slog.New(slog.DiscardHandler), AllAtOnce: true}
	r.current.Store(&settings{servers: []string{first.LocalAddr().String(), second.LocalAddr().String(),
		third.LocalAddr().String()}})
	q := new(mdns.Msg).SetQuestion("elsewhere.example.", mdns.TypeA)
	if _, err := r.ask(t.Context(), "udp", q); err != nil {
		t.Error(err)
	}
	r.current.Store(&settings{servers: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	if got, err := r.ask(t.Context(), "udp", q); err == nil {
		t.Error("nobody is there, and the answer is", got)
	}
}

// An answer that is too long for UDP says so, and comes whole over TCP.
func TestTruncation(t *testing.T) {
	s, address := serve(t, elsewhere(t, 300))
	s.Take(&ndsv1.NameTable{})
	if got := ask(t, "udp", address, "elsewhere.example.", mdns.TypeA); !got.Truncated {
		t.Error("it is not truncated")
	}
	if got := ask(t, "tcp", address, "elsewhere.example.", mdns.TypeA); got.Truncated || len(got.Answer) != 300 {
		t.Error(len(got.Answer))
	}
}

// The file of the pod's servers is followed, and its own address is not among them.
func TestResolvConf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &Resolver{Path: path, Not: []string{"127.0.0.1:53"}, Log: slog.New(slog.DiscardHandler)}
	if err := r.Read(); err == nil {
		t.Error("a file that is not there is read")
	}
	write("nameserver 127.0.0.1\nnameserver 10.96.0.10\nnameserver fd00::a\nsearch Shop.svc.cluster.local svc.cluster.local\n")
	if err := r.Read(); err != nil {
		t.Fatal(err)
	}
	if s := r.settings(); !slices.Equal(s.servers, []string{"10.96.0.10:53", "[fd00::a]:53"}) ||
		s.search != "shop.svc.cluster.local" {
		t.Error(s)
	}
	write("nameserver 10.96.0.11\n")
	ctx, cancel := context.WithCancel(t.Context())
	tick, done := make(chan time.Time), make(chan struct{})
	go func() { r.Run(ctx, tick); close(done) }()
	tick <- time.Now()
	tick <- time.Now() // the second is taken when the first is done
	if s := r.settings(); !slices.Equal(s.servers, []string{"10.96.0.11:53"}) || s.search != "" {
		t.Error(s)
	}
	cancel()
	<-done
}
