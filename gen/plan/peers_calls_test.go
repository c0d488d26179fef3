package plan

import (
	"fmt"
	"strings"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// reached is what becomes of a connection: the cluster that it is passed on to, empty for none; whether as HTTP, and
// whether the proxy ends mutual TLS.
type reached struct {
	cluster      string
	http, mutual bool
}

// reach returns what a chain makes of a connection.
func reach(t *testing.T, c *listenerpb.FilterChain, d dialer) (out reached) {
	t.Helper()
	if c == nil || c.GetTransportSocket() != nil && !d.mesh {
		return out
	}
	last := c.GetFilters()[len(c.GetFilters())-1].GetTypedConfig()
	out.mutual = c.GetTransportSocket() != nil
	var err error
	if web := (&hcmpb.HttpConnectionManager{}); last.MessageIs(web) {
		if d.transport == "tls" && !out.mutual {
			return reached{} // TLS is no HTTP
		}
		err = last.UnmarshalTo(web)
		out.cluster = web.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetCluster()
		out.http = true
	} else {
		bytes := &tcppb.TcpProxy{}
		err = last.UnmarshalTo(bytes)
		out.cluster = bytes.GetCluster()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// inboundOf returns virtualInbound of a proxy.
func (m *policed) inboundOf(id uint64) *listenerpb.Listener {
	m.t.Helper()
	e, ok := m.sets()[id].Sections.Of(xdstype.Listener).Get("virtualInbound")
	l := &listenerpb.Listener{}
	if !ok || proto.Unmarshal(e.Message(), l) != nil {
		m.t.Fatal("there is no inbound listener")
	}
	return l
}

// put applies objects, and services in place of those of their names.
func (m *policed) put(objects map[value.ObjectKey]value.Value, services ...*value.Service) {
	m.t.Helper()
	b := &snapshottest.Batch{Objects: objects, Services: map[value.ServiceKey]*value.Service{}}
	for _, s := range services {
		b.Services[s.ServiceKey] = s
	}
	snapshottest.Apply(m.builder, b)
	m.settle()
}

// serviceWith returns the service of app-0 with other ports.
func (m *policed) serviceWith(protocol value.Protocol, ports ...int) *value.Service {
	svc := *m.builder.View().Snapshot.Service(value.ServiceKey{Host: "app-0.shop.svc.cluster.local", Namespace: "shop"})
	svc.Ports = nil
	for _, n := range ports {
		svc.Ports = append(svc.Ports, &value.Port{Name: fmt.Sprint("p", n), Number: n, TargetPort: n, Protocol: protocol})
	}
	return &svc
}

func headless(svc *value.Service) *value.Service {
	svc.Addresses, svc.Headless, svc.Resolution = nil, true, value.Passthrough
	return svc
}

// sidecarWith returns a Sidecar of app-0 that declares inbound ports of bytes; nil without any.
func sidecarWith(ports ...uint32) *value.Sidecar {
	if len(ports) == 0 {
		return nil
	}
	spec := &networking.Sidecar{WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "app-0"}},
		Egress: []*networking.IstioEgressListener{{Hosts: []string{"*/*"}}}}
	for _, p := range ports {
		spec.Ingress = append(spec.Ingress, &networking.IstioIngressListener{DefaultEndpoint: fmt.Sprint("127.0.0.1:", p),
			Port: &networking.SidecarPort{Number: p, Protocol: "TCP", Name: fmt.Sprint("p", p)}})
	}
	return &value.Sidecar{Meta: value.Meta{Namespace: "shop", Name: "own"}, SidecarSettings: istio.Sidecar(spec)}
}

// allModes are those that a policy may name, and nil.
func allModes() []*value.MTLSMode {
	out := []*value.MTLSMode{nil}
	for _, mode := range []value.MTLSMode{value.Permissive, value.Strict, value.Disabled} {
		out = append(out, &mode)
	}
	return out
}

// TestPeerAuthenticationAtPorts: whoever declares a port (a service, one without addresses, a Sidecar, or nobody), the
// mode of the workload holds there, and that of the port where there is one; what is let in reaches the cluster of the
// port, or the one for ports that nobody declares.
func TestPeerAuthenticationAtPorts(t *testing.T) {
	const usual, special = 8080, 9090
	m := newPoliced(t, 1)
	rows := 0
	for _, c := range []struct {
		name     string
		service  *value.Service
		sidecar  []uint32
		protocol map[uint32]value.Protocol // of those that are declared
	}{
		{"nobody", m.serviceWith(value.TCP, 5050), nil, nil},
		{"a service of bytes", m.serviceWith(value.TCP, usual, special), nil,
			map[uint32]value.Protocol{usual: value.TCP, special: value.TCP}},
		{"a service of HTTP", m.serviceWith(value.HTTP, usual, special), nil,
			map[uint32]value.Protocol{usual: value.HTTP, special: value.HTTP}},
		{"a service without addresses", headless(m.serviceWith(value.TCP, usual, special)), nil,
			map[uint32]value.Protocol{usual: value.TCP, special: value.TCP}},
		{"a service and a Sidecar", m.serviceWith(value.TCP, usual, special), []uint32{usual, special},
			map[uint32]value.Protocol{usual: value.TCP, special: value.TCP}},
		{"a Sidecar", m.serviceWith(value.TCP, 5050), []uint32{usual, special},
			map[uint32]value.Protocol{usual: value.TCP, special: value.TCP}},
		{"a service, and a Sidecar one of its ports", m.serviceWith(value.TCP, usual, special), []uint32{usual},
			map[uint32]value.Protocol{usual: value.TCP}},
	} {
		for i := range 16 {
			workload, port := allModes()[i&3], allModes()[i>>2]
			sidecar := value.ObjectKey{Kind: value.KindSidecar, Namespace: "shop", Name: "own"}
			policy := &value.PeerAuthentication{Meta: value.Meta{Namespace: "shop", Name: "own"},
				Labels: value.Labels{"app": "app-0"}, Mode: workload, Ports: map[uint32]*value.MTLSMode{special: port}}
			objects := map[value.ObjectKey]value.Value{policy.Object(): policy, sidecar: nil}
			if s := sidecarWith(c.sidecar...); s != nil {
				objects[sidecar] = s
			}
			m.put(objects, c.service)
			l := m.inboundOf(0)
			for _, number := range []uint32{usual, special} {
				mode := value.Permissive
				if workload != nil {
					mode = *workload
				}
				if number == special && port != nil {
					mode = *port
				}
				protocol, known := c.protocol[number]
				cluster := fmt.Sprintf("inbound|%d||", number)
				if !known {
					protocol, cluster = value.Auto, "InboundPassthroughCluster"
				}
				for _, d := range dialers() {
					rows++
					want := wanted(mode, protocol, d)
					if want.cluster != "" {
						want.cluster = cluster
					}
					if got := reach(t, chainFor(l, number, d), d); got != want {
						t.Errorf("%s declares it; workload %v, port %d %v; %s: %+v, want %+v", c.name, show(workload), number,
							show(port), d.name, got, want)
					}
				}
			}
		}
	}
	if rows != 7*16*2*8 {
		t.Errorf("%d rows", rows)
	}
}

// wanted returns what shall become of a connection to a port with a mode.
func wanted(mode value.MTLSMode, p value.Protocol, d dialer) (out reached) {
	raw := d.transport == "raw_buffer"
	out.mutual = d.mesh && mode != value.Disabled
	let := raw || out.mutual || p != value.HTTP
	if mode == value.Strict {
		let = d.mesh
	}
	if !let {
		return reached{}
	}
	out.cluster = "any"
	web := strings.HasPrefix(d.name, "HTTP")
	out.http = p == value.HTTP || p == value.Auto && web && (raw || out.mutual)
	return out
}

// secured reports whether the connections of a cluster to an endpoint with a mark are mutual TLS.
func secured(c *clusterpb.Cluster, mark string) bool {
	socket := c.GetTransportSocket()
	for _, m := range c.GetTransportSocketMatches() {
		if want, ok := m.GetMatch().GetFields()["tlsMode"]; !ok || want.GetStringValue() == mark {
			socket = m.GetTransportSocket()
			break
		}
	}
	return strings.HasSuffix(socket.GetName(), ".tls")
}

// TestPeerAuthenticationFromClients has a client with a proxy call a server by the address of its service, at its own
// address by a service without one, and at its own address without any service; with rules of DestinationRules for TLS
// and without. Without a rule calls by the service are always answered, and by mutual TLS wherever the server takes it.
// Where connections go to the address that the client chose, its proxy looks at the policy of the namespace alone.
func TestPeerAuthenticationFromClients(t *testing.T) {
	m := newPoliced(t, 2)
	mesh := *testMesh(0)
	clusters := *mesh.Clusters
	clusters.AutoMTLS, mesh.Clusters = true, &clusters
	const host, number = "app-0.shop.svc.cluster.local", 8080
	ruleKey := value.ObjectKey{Kind: value.KindDestinationRule, Namespace: "shop", Name: "own"}
	rows := 0
	for _, kind := range []string{"service", "headless", "address"} {
		for _, tls := range []string{"", "DISABLE", "ISTIO_MUTUAL"} {
			for i := range 64 {
				namespace, workload, port := allModes()[i&3], allModes()[i>>2&3], allModes()[i>>4]
				svc := m.serviceWith(value.TCP, number)
				svc.Addresses, svc.Headless, svc.Resolution = []string{"10.96.0.1"}, false, value.ClientSideLB
				if kind == "headless" {
					svc = headless(svc)
				}
				e := endpointOf("10.0.0.1", value.Labels{"app": "app-0"})
				e.Ports = []value.EndpointPort{{Name: svc.Ports[0].Name, Port: number}}
				all := &value.PeerAuthentication{Meta: value.Meta{Namespace: "shop", Name: "all"}, Mode: namespace}
				own := &value.PeerAuthentication{Meta: value.Meta{Namespace: "shop", Name: "own"},
					Labels: value.Labels{"app": "app-0"}, Mode: workload, Ports: map[uint32]*value.MTLSMode{number: port}}
				known := &value.Projection{Any: true, MutualTLS: []string{svc.Ports[0].Name}}
				if kind == "headless" {
					known.Inline = []*value.Endpoint{e}
				}
				b := &snapshottest.Batch{Mesh: &mesh, Services: map[value.ServiceKey]*value.Service{svc.ServiceKey: svc},
					Projections:      map[value.ServiceKey]*value.Projection{svc.ServiceKey: known},
					Endpoints:        map[value.ServiceKey][]*value.Endpoint{svc.ServiceKey: {e}},
					Objects:          map[value.ObjectKey]value.Value{all.Object(): all, own.Object(): own},
					DestinationRules: map[value.ObjectKey]*value.DestinationRule{ruleKey: nil}}
				if tls != "" {
					mode := networking.ClientTLSSettings_TLSmode(networking.ClientTLSSettings_TLSmode_value[tls])
					b.DestinationRules[ruleKey] = &value.DestinationRule{Meta: value.Meta{Namespace: "shop", Name: "own"},
						Export: value.Visibility{Public: true}, DestinationPolicy: istio.Policy(&networking.DestinationRule{
							Host: host, TrafficPolicy: &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{Mode: mode}}})}
				}
				snapshottest.Apply(m.builder, b)
				m.settle()

				mode := value.Permissive
				for _, says := range []*value.MTLSMode{namespace, workload, port} {
					if says != nil {
						mode = *says
					}
				}
				begins := m.calls(kind, fmt.Sprintf("outbound|%d||%s", number, host))
				asks := mode != value.Disabled
				switch {
				case kind == "address": // nobody knows whose it is
					asks = false
				case tls != "":
					asks = tls == "ISTIO_MUTUAL"
				case namespace != nil && *namespace == value.Disabled:
					asks = false
				case kind == "headless":
					asks = true
				}
				if begins != asks {
					t.Errorf("%s, rule %q, namespace %v, workload %v, port %v: the client begins mutual TLS: %v, want %v",
						kind, tls, show(namespace), show(workload), show(port), begins, asks)
				}
				d := dialer{transport: "raw_buffer"}
				if begins {
					d = dialer{transport: "tls", protocols: []string{"istio-peer-exchange", "istio"}, mesh: true}
				}
				got := reach(t, chainFor(m.inboundOf(0), number, d), d)
				answered := got.cluster != "" && got.mutual == begins
				want := mode == value.Permissive || begins == (mode == value.Strict)
				if answered != want {
					t.Errorf("%s, rule %q, namespace %v, workload %v, port %v: answered %v (%+v), want %v",
						kind, tls, show(namespace), show(workload), show(port), answered, got, want)
				}
				rows++
			}
		}
	}
	if rows != 3*3*64 {
		t.Errorf("%d rows", rows)
	}
}

// calls reports whether the second proxy begins mutual TLS when it calls the first: by a cluster of the service, or at
// its address.
func (m *policed) calls(kind, cluster string) bool {
	m.t.Helper()
	if kind == "address" {
		cluster = "PassthroughCluster"
	}
	set, c := m.sets()[1], &clusterpb.Cluster{}
	e, ok := set.Sections.Of(xdstype.Cluster).Get(cluster)
	if !ok || proto.Unmarshal(e.Message(), c) != nil {
		m.t.Fatalf("there is no cluster %s", cluster)
	}
	mark := ""
	if a, ok := set.Assignments.Get(cluster); ok && c.GetType() == clusterpb.Cluster_EDS {
		l := &endpointpb.ClusterLoadAssignment{}
		if err := proto.Unmarshal(a.Entry(m.builder.View().Endpoints).Message(), l); err != nil {
			m.t.Fatal(err)
		}
		mark = l.GetEndpoints()[0].GetLbEndpoints()[0].GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"].
			GetFields()["tlsMode"].GetStringValue()
	}
	return secured(c, mark)
}
