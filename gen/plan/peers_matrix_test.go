package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// dialer is how a client connects: what inspectors find out of its connection, and whether it has a certificate of the
// mesh.
type dialer struct {
	name, transport string
	protocols       []string
	mesh            bool
}

func dialers() []dialer {
	return []dialer{
		{"HTTP in plain text", "raw_buffer", []string{"http/1.1"}, false},
		{"HTTP/2 in plain text", "raw_buffer", []string{"h2c"}, false},
		{"bytes in plain text", "raw_buffer", nil, false},
		{"HTTP of a sidecar", "tls", []string{"istio-http/1.1", "istio", "http/1.1"}, true},
		{"HTTP/2 of a sidecar", "tls", []string{"istio-h2", "istio", "h2"}, true},
		{"bytes of a sidecar", "tls", []string{"istio-peer-exchange", "istio"}, true},
		{"TLS of its own", "tls", []string{"h2", "http/1.1"}, false},
		{"TLS of its own without ALPN", "tls", nil, false},
	}
}

// inspected returns what the inspectors of a listener find out about a connection to a port: nothing of TLS where the
// one for TLS does not look.
func inspected(l *listenerpb.Listener, port uint32, d dialer) dialer {
	looks := map[string]bool{}
	for _, f := range l.GetListenerFilters() {
		looks[f.GetName()] = !disabledAt(f.GetFilterDisabled(), port)
	}
	switch tls := d.transport == "tls"; {
	case tls && !looks["envoy.filters.listener.tls_inspector"]:
		d.transport, d.protocols = "raw_buffer", nil
	case !tls && !looks["envoy.filters.listener.http_inspector"]:
		d.protocols = nil
	}
	return d
}

func disabledAt(p *listenerpb.ListenerFilterChainMatchPredicate, port uint32) bool {
	switch r := p.GetRule().(type) {
	case *listenerpb.ListenerFilterChainMatchPredicate_OrMatch:
		return slices.ContainsFunc(r.OrMatch.GetRules(),
			func(one *listenerpb.ListenerFilterChainMatchPredicate) bool { return disabledAt(one, port) })
	case *listenerpb.ListenerFilterChainMatchPredicate_NotMatch:
		return !disabledAt(r.NotMatch, port)
	case *listenerpb.ListenerFilterChainMatchPredicate_DestinationPortRange:
		// The range ends before its end.
		return int32(port) >= r.DestinationPortRange.GetStart() && int32(port) < r.DestinationPortRange.GetEnd()
	}
	return p.GetAnyMatch()
}

// chainFor returns the chain that Envoy takes a connection to, nil for none: the most specific match decides at each
// step, and no step is taken back.
func chainFor(l *listenerpb.Listener, port uint32, d dialer) *listenerpb.FilterChain {
	chains := l.GetFilterChains()
	d = inspected(l, port, d)
	narrow := func(exact, other func(*listenerpb.FilterChainMatch) bool) {
		var first, second []*listenerpb.FilterChain
		for _, c := range chains {
			switch m := c.GetFilterChainMatch(); {
			case exact(m):
				first = append(first, c)
			case other(m):
				second = append(second, c)
			}
		}
		if chains = first; len(first) == 0 {
			chains = second
		}
	}
	narrow(func(m *listenerpb.FilterChainMatch) bool { return m.GetDestinationPort().GetValue() == port },
		func(m *listenerpb.FilterChainMatch) bool { return m.GetDestinationPort() == nil })
	narrow(func(m *listenerpb.FilterChainMatch) bool { return m.GetTransportProtocol() == d.transport },
		func(m *listenerpb.FilterChainMatch) bool { return m.GetTransportProtocol() == "" })
	narrow(func(m *listenerpb.FilterChainMatch) bool {
		return slices.ContainsFunc(m.GetApplicationProtocols(),
			func(p string) bool { return slices.Contains(d.protocols, p) })
	}, func(m *listenerpb.FilterChainMatch) bool { return len(m.GetApplicationProtocols()) == 0 })
	if len(chains) == 0 {
		return nil
	}
	return chains[0]
}

// serves reports whether a connection reaches the application as the client means it, and whether by mutual TLS that
// the proxy ends.
func serves(c *listenerpb.FilterChain, d dialer) (ok, mutual bool) {
	switch {
	case c == nil:
		return false, false
	case c.GetTransportSocket() != nil:
		return d.mesh, d.mesh
	case d.transport == "tls": // passes as bytes, or is no HTTP
		filters := c.GetFilters()
		return strings.HasSuffix(filters[len(filters)-1].GetName(), "tcp_proxy") && !d.mesh, false
	}
	return true, false
}

// TestPeerAuthenticationDecides takes every combination of policies of the mesh, the namespace, the workload and a port
// with ports of each kind and clients of each kind: STRICT lets in sidecars alone, PERMISSIVE also plain text (and TLS
// of their own where the port may speak it), DISABLE whatever the application itself speaks. The narrowest policy that
// says something decides.
func TestPeerAuthenticationDecides(t *testing.T) {
	m := newPoliced(t, 1)
	k := value.ServiceKey{Host: "app-0.shop.svc.cluster.local", Namespace: "shop"}
	old := m.builder.View().Snapshot.Service(k)
	svc := *old
	ports := map[uint32]value.Protocol{8080: value.HTTP, 9000: value.TCP, 9090: value.Auto}
	svc.Ports = nil
	for number, protocol := range ports {
		svc.Ports = append(svc.Ports, &value.Port{Name: fmt.Sprint("p", number), Number: int(number),
			TargetPort: int(number), Protocol: protocol})
	}
	slices.SortFunc(svc.Ports, func(a, b *value.Port) int { return a.Number - b.Number })
	snapshottest.Apply(m.builder, &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{k: &svc}})
	m.settle()
	ports[9999] = value.Auto // which nobody declares

	modes := []*value.MTLSMode{nil}
	for _, mode := range []value.MTLSMode{value.Permissive, value.Strict, value.Disabled} {
		modes = append(modes, &mode)
	}
	rows := 0
	for i := range 256 {
		mesh, namespace, workload, port := modes[i&3], modes[i>>2&3], modes[i>>4&3], modes[i>>6]
		objects := map[value.ObjectKey]value.Value{}
		put := func(p *value.PeerAuthentication, is bool) {
			if objects[p.Object()] = nil; is {
				objects[p.Object()] = p
			}
		}
		root := testMesh(0).RootNamespace
		put(&value.PeerAuthentication{Meta: value.Meta{Namespace: root, Name: "mesh"}, Mode: mesh}, mesh != nil)
		put(&value.PeerAuthentication{Meta: value.Meta{Namespace: "shop", Name: "all"}, Mode: namespace}, namespace != nil)
		own := &value.PeerAuthentication{Meta: value.Meta{Namespace: "shop", Name: "own"},
			Labels: value.Labels{"app": "app-0"}, Mode: workload, Ports: map[uint32]*value.MTLSMode{}}
		for number := range ports {
			if number != 9090 && port != nil { // one port has no mode of its own
				own.Ports[number] = port
			}
		}
		put(own, workload != nil || port != nil)
		snapshottest.Apply(m.builder, &snapshottest.Batch{Objects: objects})
		m.settle()
		e, ok := m.sets()[0].Sections.Of(xdstype.Listener).Get("virtualInbound")
		l := &listenerpb.Listener{}
		if !ok || proto.Unmarshal(e.Message(), l) != nil {
			t.Fatal("there is no inbound listener")
		}
		for number, protocol := range ports {
			mode := value.Permissive
			for _, says := range []*value.MTLSMode{mesh, namespace, workload, own.Ports[number]} {
				if says != nil {
					mode = *says
				}
			}
			for _, d := range dialers() {
				raw := d.transport == "raw_buffer"
				want, mutual := raw, d.mesh
				switch mode {
				case value.Strict:
					want = d.mesh
				case value.Permissive:
					want = raw || d.mesh || protocol != value.HTTP
				case value.Disabled:
					mutual, want = false, raw || !d.mesh && protocol != value.HTTP
				}
				rows++
				got, by := serves(chainFor(l, number, d), d)
				if got != want || got && by != mutual {
					t.Errorf("mesh %v, namespace %v, workload %v, port %d %v; %s: served %v by mutual TLS %v, want %v %v",
						show(mesh), show(namespace), show(workload), number, show(own.Ports[number]), d.name, got, by, want, mutual)
				}
			}
		}
	}
	if rows != 256*4*8 {
		t.Errorf("%d rows", rows)
	}
}

func show(mode *value.MTLSMode) string {
	if mode == nil {
		return "-"
	}
	return fmt.Sprint(*mode)
}
