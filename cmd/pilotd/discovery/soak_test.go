package discovery

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

var changes = flag.Int("changes", 4000, "endpoint changes of the soak test; a million takes some minutes")

// TestSoak is the other half of I9: memory does not grow with the number of changes. In each, a pod is replaced by
// another one, with a name, an address and labels of its own, and clients of both protocols are sent its service's
// endpoints. What is live after each tenth is compared; the first tenths fill what is bounded.
func TestSoak(t *testing.T) {
	r := startRun(t)
	defer r.stop()
	r.server.Store.Apply(sampleMesh())
	for i := range 4 {
		defer r.soaker(workload("shop", i), i%2 == 0).leave()
	}
	var lives []int
	base := 0
	for i := range *changes {
		r.server.Store.Apply(replacement(i))
		if i%8 == 7 {
			r.server.Shards.Clients() // the workers have seen it
		}
		if (i+1)%(*changes/10) == 0 {
			r.rest()
			lives = append(lives, liveBytes())
			t.Logf("after %d changes: %d KiB live, %d goroutines, holds %v", i+1, lives[len(lives)-1]>>10,
				runtime.NumGoroutine(), r.holdings())
		}
		if i == *changes*3/10 {
			base = sum(r.holdings())
		}
	}
	if n := sum(r.holdings()); n > base+base/20+16 {
		t.Errorf("it holds %d things, and held %d after three tenths", n, base)
	}
	early, late := max(lives[2], lives[3], lives[4]), min(lives[7], lives[8], lives[9])
	if late > early+early/50+256<<10 {
		t.Errorf("memory grows: %v", lives)
	}
	sent := 0
	for _, f := range r.server.Shards.Stats() {
		sent += int(f.Sent)
	}
	if sent < *changes/8 {
		t.Errorf("%d responses for %d changes", sent, *changes)
	}
}

// replacement returns the i-th pod of its service in place of the one before.
func replacement(i int) []ingest.Event {
	app := []string{"web", "cart"}[i%2]
	address := func(i int) string {
		return fmt.Sprintf("10.%d.%d.%d", 128+i>>16&127, i>>8&255, i&255)
	}
	born := pod(fmt.Sprint(app, "-", i), app, address(i))
	born.Object.(*corev1.Pod).Labels["pod-template-hash"] = fmt.Sprint(i)
	return []ingest.Event{born, slice(app, address(i)), gone(pod(fmt.Sprint(app, "-", i-2), app, ""))}
}

func sum(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}

// liveBytes returns what is in use after collections.
func liveBytes() int {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// soaker is a client that ACKs what it gets without looking at it.
type soaker struct {
	id     uint64
	server *Server
	first  []ads.Request
	inbox  chan soaked
	done   chan struct{}
}

type soaked struct{ url, nonce string }

// soaker connects a client that subscribes to everything.
func (r *running) soaker(n *corev3.Node, delta bool) *soaker {
	p, err := proxy.Accept(n, proxy.Peer{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.nextID++
	s := &soaker{id: r.nextID, server: r.server, inbox: make(chan soaked, 64), done: make(chan struct{})}
	endpoints := r.server.Names.Of([]string{clusterOf("web"), clusterOf("cart"), clusterOf("other")})
	for url, names := range map[string]*ads.Names{xdstype.ClusterURL: nil, xdstype.EndpointURL: endpoints,
		xdstype.ListenerURL: nil, xdstype.RouteURL: r.server.Names.Of([]string{"80"})} {
		req := ads.Request{Delta: delta, TypeURL: url}
		if delta {
			req.Subscribe = names
		} else {
			req.Names = names
		}
		s.first = append(s.first, req)
	}
	if err := s.server.Shards.Attach(s, p, s.first[0]); err != nil {
		r.t.Fatal(err)
	}
	go s.run()
	return s
}

// ID implements shard.Stream.
func (s *soaker) ID() uint64 { return s.id }

// Send implements shard.Stream.
func (s *soaker) Send(url string, r *encodecache.Response) { s.inbox <- soaked{url, r.Nonce()} }

// Close implements shard.Stream.
func (s *soaker) Close(err error) { panic(fmt.Sprint("a client was closed: ", err)) }

func (s *soaker) leave() {
	s.server.Shards.Detach(s.id)
	close(s.done)
}

// run asks for all types, and ACKs.
func (s *soaker) run() {
	for _, r := range s.first[1:] {
		s.server.Shards.Receive(s.id, r)
	}
	for {
		select {
		case in := <-s.inbox:
			ack := ads.Request{TypeURL: in.url, Nonce: in.nonce}
			for _, r := range s.first {
				if r.TypeURL == in.url {
					ack.Delta, ack.Names = r.Delta, r.Names
				}
			}
			s.server.Shards.Receive(s.id, ack)
		case <-s.done:
			return
		}
	}
}

// rest waits until everybody has answered everything.
func (r *running) rest() {
	for calm := 0; calm < 3; calm++ {
		if err := r.server.Planner.Barrier(context.Background()); err != nil {
			r.t.Fatal(err)
		}
		for _, c := range r.server.Shards.Clients() {
			for _, st := range c.Types {
				if st.Waiting || st.Pending {
					calm = -1
				}
			}
		}
	}
}
