package outbound

import (
	"fmt"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// listenerMerge makes the listener at one address and port, from the service ports that meet there, one after the
// other.
//
// Bytes and HTTP can share a listener, once an inspector tells them apart; chains can share one, if they take different
// connections. Of two that take the same the first stays. Protocols in which the server speaks first stand alone, for
// an inspector would wait for the client.
type listenerMerge struct {
	at       ListenerAddress
	protocol value.Protocol // of what is there: Auto, once it is sniffed
	chains   []gen.ChainKey // empty: nothing is there yet
}

// Listener returns the listener at an address and port for some service ports, which are in the order of Before; nil if
// there are none.
func (v View) Listener(at ListenerAddress, port int, ports []ServicePort) *encodecache.Entry {
	m := &listenerMerge{at: at}
	for _, c := range ports {
		m.add(v, c)
	}
	if len(m.chains) == 0 {
		return nil
	}
	k := gen.OutboundListenerKey{
		Bind: at.Bind, Also: at.also, Port: port, BindToPort: v.sc.Traits.Interception == value.NoInterception,
		Fallthrough: v.fallthroughCluster(),
	}
	for i := len(m.chains) - 1; i >= 0; i-- {
		c := m.chains[i]
		if c.RouteName != "" {
			k.Mesh, k.Detection = v.n.Mesh.HTTP, v.n.Mesh.Detection
			k.Filters, k.HTTP10, k.DynamicDNS = v.sc.Traits.Filters, v.sc.Traits.HTTP10,
				DynamicDNS(v.n, v.sc)
		}
		if c.MatchesAll() {
			k.Fallthrough = ""
		}
		k.Chains = v.t.listeners.chains.Get(gen.ChainList{Chain: c, Next: k.Chains})
	}
	return v.t.listeners.outbound.Get(k)
}

// fallthroughCluster returns where connections go that no service is meant by.
func (v View) fallthroughCluster() string {
	switch c := egressCluster(v.n, v.sc); c {
	case "":
		return gen.BlackHole
	case gen.DynamicDNSOut: // which resolves the host of an HTTP request; bytes name none
		return gen.PassthroughOut
	default:
		return c
	}
}

func (m *listenerMerge) add(v View, c ServicePort) {
	switch p := c.port.Protocol; {
	case p.IsHTTP():
		m.addHTTP(c)
	case p == value.Auto:
		m.addSniffed(v, c)
	default:
		m.addTCP(v, c)
	}
}

// addHTTP: all HTTP services of a port are in its one RouteConfiguration, so that a second one changes nothing.
func (m *listenerMerge) addHTTP(c ServicePort) {
	there := len(m.chains) > 0
	if there && (!m.protocol.IsTCP() || m.standsAlone(c)) {
		return
	}
	chain := gen.ChainKey{RouteName: fmt.Sprint(c.port.Number), GRPCWeb: c.port.Protocol == value.GRPCWeb,
		Sniffed: m.at.Wildcard}
	m.merge([]gen.ChainKey{chain})
	if there || m.at.Wildcard {
		m.protocol = value.Auto
	} else {
		m.protocol = c.port.Protocol
	}
}

func (m *listenerMerge) addTCP(v View, c ServicePort) {
	there := len(m.chains) > 0
	if there && m.standsAlone(c) {
		return
	}
	switch {
	case !there:
		m.protocol = c.port.Protocol
	case m.protocol.IsHTTP():
		m.protocol = value.Auto
	}
	m.merge(v.tcpChains(m.at, c))
}

// addSniffed: at an address of its own a service has a RouteConfiguration of its own, else it is in the port's.
func (m *listenerMerge) addSniffed(v View, c ServicePort) {
	there := len(m.chains) > 0
	if there && (m.protocol == value.Auto || m.standsAlone(c)) {
		return
	}
	if m.protocol.IsHTTP() {
		m.chains = nil
	}
	name := fmt.Sprintf("%s:%d", c.service.Host, c.port.Number)
	if m.at.Wildcard {
		name = fmt.Sprint(c.port.Number)
	}
	m.merge(append(v.tcpChains(m.at, c), gen.ChainKey{RouteName: name, Sniffed: true, Defined: m.definedBy(c)}))
	m.protocol = value.Auto
}

// definedBy returns the object that an HTTP chain comes from. At the wildcard address there is no single one, for the
// chain serves all services of the port.
func (m *listenerMerge) definedBy(c ServicePort) value.ObjectKey {
	if m.at.Wildcard {
		return value.ObjectKey{}
	}
	return c.service.Object
}

// standsAlone reports whether what is there, or what comes, cannot share a listener with another protocol.
func (m *listenerMerge) standsAlone(c ServicePort) bool {
	first := func(p value.Protocol) bool { return p == value.Mongo || p == value.MySQL }
	return c.port.Protocol != m.protocol && (first(c.port.Protocol) || first(m.protocol))
}

// merge adds the chains that take other connections than those that are there.
func (m *listenerMerge) merge(chains []gen.ChainKey) {
next:
	for _, c := range chains {
		for _, o := range m.chains {
			if o.SameMatch(c) {
				continue next
			}
		}
		m.chains = append(m.chains, c)
	}
}
