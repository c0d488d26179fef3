package discovery

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// refuser is a State-of-the-World client that asks for one route configuration, and refuses whatever has a text in it.
type refuser struct {
	id      uint64
	server  *Server
	refuses string
	inbox   chan []byte
	// Owned by the goroutine of run, until that has ended.
	last *discoveryv3.DiscoveryResponse // that it has taken
}

func startRefuser(t *testing.T, r *running, refuses string) *refuser {
	c := &refuser{id: 1 << 40, server: r.server, refuses: refuses, inbox: make(chan []byte, 1000)}
	p, err := proxy.Accept(workload("shop", 99), proxy.Peer{})
	if err != nil {
		t.Fatal(err)
	}
	go c.run()
	if err := r.server.Shards.Attach(c, p, c.request("", nil)); err != nil {
		t.Fatal(err)
	}
	pass()
	return c
}

// pass lets everything happen that is due, however long it waits.
func pass() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (c *refuser) leave() {
	c.server.Shards.Detach(c.id)
	close(c.inbox)
}

// ID, Send and Close implement shard.Stream.
func (c *refuser) ID() uint64                             { return c.id }
func (c *refuser) Send(_ string, r *encodecache.Response) { c.inbox <- r.Buffers().Materialize() }
func (c *refuser) Close(err error)                        { panic(err) }
func (c *refuser) request(nonce string, e *statuspb.Status) ads.Request {
	version := ""
	if c.last != nil {
		version = c.last.VersionInfo
	}
	return ads.Request{TypeURL: xdstype.RouteURL, Version: version, Nonce: nonce, Error: e,
		Names: c.server.Names.Of([]string{"80"})}
}

func (c *refuser) run() {
	for b := range c.inbox {
		r := &discoveryv3.DiscoveryResponse{}
		if err := proto.Unmarshal(b, r); err != nil {
			panic(err)
		}
		var said *statuspb.Status
		if bytes.Contains(b, []byte(c.refuses)) {
			said = &statuspb.Status{Code: 13, Message: "this one takes no such thing"}
		} else {
			c.last = r
		}
		c.server.Shards.Receive(c.id, c.request(r.Nonce, said))
	}
}

// has reports whether what the client has taken holds a text.
func (c *refuser) has(text string) bool {
	b, _ := proto.Marshal(c.last)
	return bytes.Contains(b, []byte(text))
}

// TestWhatClientsRefuseIsTracedToItsObject: the virtual host that a client refuses is held back alone, and the registry
// names the object that it comes from, the part, the client and what it said, until the object is another.
func TestWhatClientsRefuseIsTracedToItsObject(t *testing.T) {
	inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
		r.apply(virtualService("bad", "other", "refused.example.com"))
		c := startRefuser(t, r, "refused.example.com")
		defer func() { c.leave(); synctest.Wait() }()
		all := r.server.Reports.All()
		if len(all) != 1 {
			t.Fatalf("%d problems, want one: %+v", len(all), all)
		}
		p := all[0]
		want := value.ObjectKey{Kind: value.KindVirtualService, Namespace: "shop", Name: "bad"}
		if p.Key != want || p.Cause != report.ClientRefused ||
			!strings.Contains(p.Resource, "RDS 80, virtual host "+hostOf("other")) {
			t.Errorf("told of %s, %s, %q", p.Key, p.Cause, p.Resource)
		}
		if len(p.Clients) != 1 || !strings.Contains(p.Clients[0].Proxy, "client-99.shop") ||
			p.Clients[0].Message != "this one takes no such thing" {
			t.Errorf("clients: %+v", p.Clients)
		}
		if c.last == nil || !c.has(hostOf("web")) {
			t.Fatal("the other virtual hosts did not arrive")
		}
		r.apply(virtualService("web", "web", hostOf("cart")+"x.example.com"))
		if pass(); !c.has(hostOf("cart") + "x.example.com") {
			t.Error("another object's edit did not arrive")
		}
		r.apply(virtualService("bad", "other", hostOf("web")))
		if pass(); len(r.server.Reports.All()) != 0 {
			t.Errorf("it is mended, and still told of: %+v", r.server.Reports.All())
		}
	})
}
