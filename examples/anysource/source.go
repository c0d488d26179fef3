// Package anysource serves a map from type URL and name to the bytes of a resource, over State-of-the-World and Delta
// xDS. It shows that the protocol layer (shard/grpcstream, shard, shard/ads) runs on any source, and how one is plugged
// in: see Serve. A Source can give each node a snapshot of its own, and may be changed while it is served.
package anysource

import (
	"context"
	"net"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/shard/grpcstream"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Resources are encoded messages, by the URL of their type and by their name.
type Resources map[string]map[string][]byte

// Source is what is served. Its methods may be called at any time.
type Source struct {
	types *xdstype.Table // immutable after New

	mu sync.Mutex
	// Guarded by mu.
	sink     classes.Sink // nil before Serve
	revision uint64
	sets     map[string]*classes.ResourceSet // by node id; that of "" is for all others
	classes  map[string]*classes.Class       // of the nodes that are connected
	clients  map[uint64]string               // the node ids of the streams
}

// New makes a Source without resources. more are the types that it serves besides the standard ones, of which it knows
// nothing but the URL.
func New(more ...string) *Source {
	types := xdstype.Standard()
	for _, url := range more {
		types = types.With(xdstype.Opaque(url))
	}
	return &Source{types: types, sets: map[string]*classes.ResourceSet{"": {}}, classes: map[string]*classes.Class{},
		clients: map[uint64]string{}}
}

// Serve serves a Source on a listener until ctx ends. It returns the error of the listener.
func (s *Source) Serve(ctx context.Context, l net.Listener) error {
	names := ads.NewNamesTable()
	shards := shard.New(shard.Options{Types: s.types, Planner: s, Names: names, Now: time.Now, After: time.After})
	s.mu.Lock()
	s.sink = shards
	s.mu.Unlock()
	server := grpcstream.New(shards, grpcstream.Options{Accept: accept, Names: names})
	g := server.GRPC(nil)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { shards.Run(ctx) })
	stop := context.AfterFunc(ctx, g.Stop)
	defer stop()
	return g.Serve(l)
}

// accept takes every client, by its node id.
func accept(n *corev3.Node, _ proxy.Peer) (*proxy.Proxy, error) {
	return &proxy.Proxy{ID: n.GetId()}, nil
}

// Set replaces the resources of a node, or with the empty id of all nodes that have none of their own. Clients are sent
// what differs. Types that the Source does not serve are left out.
func (s *Source) Set(node string, resources Resources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	set := &classes.ResourceSet{Revision: s.revision, Sections: make(classes.Sections, s.types.Len())}
	for url, byName := range resources {
		if typ, ok := s.types.Of(url); ok {
			set.Sections[typ] = section(url, byName)
		}
	}
	s.sets[node] = set
	s.publish()
}

// Clear takes the resources of its own from a node: it has those of all others.
func (s *Source) Clear(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node == "" {
		return
	}
	delete(s.sets, node)
	s.revision++
	s.publish()
}

// publish gives every class in use its ResourceSet. The caller holds mu.
func (s *Source) publish() {
	if s.sink == nil {
		return
	}
	sets := map[*classes.Class]*classes.ResourceSet{}
	for _, node := range s.clients {
		sets[s.classes[node]] = s.setOf(node)
	}
	s.sink.Advanced(sets, classes.Endpoints{})
}

// setOf returns what a node should have, at the newest revision. The caller holds mu.
func (s *Source) setOf(node string) *classes.ResourceSet {
	set, ok := s.sets[node]
	if !ok {
		set = s.sets[""]
	}
	now := *set
	now.Revision = s.revision
	return &now
}

func section(url string, byName map[string][]byte) classes.Section {
	var out classes.Section
	for name, message := range byName {
		out = out.Set(name, encodecache.NewLeaf(url, name, encodecache.NewFragment(message)))
	}
	return out
}

// Attach implements shard.Planner: it answers at once.
func (s *Source) Attach(id uint64, p *proxy.Proxy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.classes[p.ID] == nil {
		s.classes[p.ID] = &classes.Class{Name: p.ID, Type: value.Proxyless} // no sidecar: nothing is made up for it
	}
	s.clients[id] = p.ID
	s.sink.Assigned(id, s.classes[p.ID], s.setOf(p.ID))
}

// Detach implements shard.Planner.
func (s *Source) Detach(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.clients[id]
	delete(s.clients, id)
	for _, other := range s.clients {
		if other == node {
			return
		}
	}
	delete(s.classes, node)
}
