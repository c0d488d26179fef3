package plan

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// apiListeners are the listeners of a service for gRPC clients, one for each port under each name that a client may dial: its host, and in
// the client's own namespace the short forms of it ("web", "web.shop", "web.shop.svc").
func (t *Tables) apiListeners(n *snapshot.Snapshot, sc *Scope, svc *value.Service) []*encodecache.Entry {
	if svc.Resolution == value.Alias {
		return nil
	}
	address := "0.0.0.0"
	if len(svc.Addresses) > 0 {
		address = outboundView{t, n, sc}.ownFamily(svc.Addresses)
	}
	names := []string{svc.Host}
	if short, ok := strings.CutSuffix(svc.Host, "."+sc.Namespace+".svc."+n.Mesh.DomainSuffix); ok {
		names = append(names, short, short+"."+sc.Namespace, short+"."+sc.Namespace+".svc")
	}
	var out []*encodecache.Entry
	for _, p := range svc.Ports {
		if p.Protocol == value.UDP {
			continue
		}
		for _, name := range names {
			out = append(out, t.listeners.api.Get(gen.APIListenerKey{
				Name: net.JoinHostPort(name, strconv.Itoa(p.Number)), Address: single(address), Port: p.Number,
				RouteName: gen.ClusterName(p.Number, "", svc.Host),
			}))
		}
	}
	return out
}

// serverListeners are the listeners for gRPC servers of the workload: one for each of its ports at each address that a server may bind. A
// server asks for the one that is named for the address at which it listens.
func (t *Tables) serverListeners(own *Own) (out []*encodecache.Entry) {
	var done []int
	for _, target := range own.Targets {
		if slices.Contains(done, target.Number) {
			continue
		}
		done = append(done, target.Number)
		for _, a := range slices.Concat([]string{"0.0.0.0", "::"}, own.Addresses) {
			out = append(out, t.listeners.server.Get(gen.ServerListenerKey{Address: a, Port: target.Number}))
		}
	}
	return out
}
