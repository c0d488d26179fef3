package outbound

import (
	"net"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// apiListeners returns the listeners of a service for gRPC clients: one for each port, under the service's host.
func (t *Tables) apiListeners(n *snapshot.Snapshot, sc *scope.Scope, svc *value.Service) (out []*encodecache.Entry) {
	if svc.Resolution == value.Alias {
		return nil
	}
	for _, p := range svc.Ports {
		if p.Protocol != value.UDP {
			out = append(out, t.apiListener(View{t, n, sc}, svc, svc.Host, p.Number))
		}
	}
	return out
}

// shortNameListeners returns those of a port under the short forms that clients may dial in their own namespace: "web",
// "web.shop" and "web.shop.svc". A service that is really called so has the name for itself.
func (t *Tables) shortNameListeners(n *snapshot.Snapshot, sc *scope.Scope, port int) (out []*encodecache.Entry) {
	v := View{t, n, sc}
	sc.AtEach(n, port)
	for svc := range n.ServicesIn(sc.Namespace) {
		short, ok := strings.CutSuffix(svc.Host, "."+sc.Namespace+".svc."+n.Mesh.DomainSuffix)
		if p := svc.PortByNumber(port); !ok || p == nil || p.Protocol == value.UDP || svc.Resolution == value.Alias {
			continue
		}
		s, p := v.Seen(svc, port)
		if p == nil {
			continue
		}
		for _, name := range []string{short, short + "." + sc.Namespace, short + "." + sc.Namespace + ".svc"} {
			if own := sc.Service(n, name); own == nil || own.PortByNumber(port) == nil {
				out = append(out, t.apiListener(v, s, name, port))
			}
		}
	}
	return out
}

func (t *Tables) apiListener(v View, svc *value.Service, name string, port int) *encodecache.Entry {
	address := "0.0.0.0"
	if len(svc.Addresses) > 0 {
		address = v.ownFamily(svc.Addresses)
	}
	return t.listeners.API.Get(gen.APIListenerKey{
		Name: net.JoinHostPort(name, strconv.Itoa(port)), Address: address, Port: port,
		RouteName: gen.ClusterName(port, "", svc.Host), Defined: svc.Object,
	})
}
