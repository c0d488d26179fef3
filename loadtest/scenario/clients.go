package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
	"github.com/pilotd/pilotd/loadtest/wire"
)

// Fleet returns the options of a fleet of these clients: first sidecars of the mesh's workloads, then its gateways,
// then proxyless clients of its workloads. If there are more clients than workloads, workloads repeat.
func (c *Clients) Fleet(m *mesh.Mesh, targets []wire.Endpoint) sidecar.Options {
	return sidecar.Options{Clients: c.Total(), PerConnection: c.PerConnection, Targets: len(targets),
		Dial: func(ctx context.Context, target, client int) (net.Conn, wire.Header, error) {
			account := c.account(m, client)
			header, err := targets[target].Header(account)
			if err != nil {
				return nil, header, err
			}
			conn, err := targets[target].Dial(ctx, account)
			return conn, header, err
		},
		Spec:  func(i int) (sidecar.Spec, error) { return c.spec(m, i) },
		Marks: sidecar.Marks{Endpoint: mesh.EndpointMark, Route: mesh.RouteMark}}
}

// kind returns the kind of client i.
func (c *Clients) kind(i int) sidecar.Kind {
	switch {
	case i < c.Sidecars:
		return sidecar.Sidecar
	case i < c.Sidecars+c.Gateways:
		return sidecar.Gateway
	}
	return sidecar.Proxyless
}

func (c *Clients) spec(m *mesh.Mesh, i int) (s sidecar.Spec, err error) {
	s = sidecar.Spec{Kind: c.kind(i), Delta: c.Delta}
	var node *corev3.Node
	switch s.Kind {
	case sidecar.Sidecar:
		node = m.Node(i % m.Workloads())
	case sidecar.Gateway:
		if m.Gateways() == 0 {
			return s, errors.New("this mesh has no gateways")
		}
		node = m.GatewayNode((i - c.Sidecars) % m.Gateways())
	default:
		i = (i - c.Sidecars - c.Gateways) % m.Workloads()
		node = m.Node(i)
		node.Metadata.Fields["GENERATOR"] = structpb.NewStringValue("grpc")
		node.UserAgentName = "gRPC Go"
		node.ClientFeatures = []string{"envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw"}
		s.Listeners = c.listeners(m, i)
	}
	s.Node, err = proto.Marshal(node)
	return s, err
}

// account returns the service account of client i.
func (c *Clients) account(m *mesh.Mesh, i int) (a wire.Account) {
	switch c.kind(i) {
	case sidecar.Sidecar:
		a.Namespace, a.Name = m.Account(i % m.Workloads())
	case sidecar.Gateway:
		a.Namespace, a.Name = m.GatewayAccount((i - c.Sidecars) % m.Gateways())
	default:
		a.Namespace, a.Name = m.Account((i - c.Sidecars - c.Gateways) % m.Workloads())
	}
	return a
}

// listeners returns the listeners that the proxyless client of workload i asks for: that of its own service and of
// others in its namespace, which it sees whatever the namespace's Sidecar imports. A workload with a Sidecar of its own
// asks for its own service only.
func (c *Clients) listeners(m *mesh.Mesh, i int) (out []string) {
	n := max(1, c.Destinations)
	if m.Sidecars.Workloads > 0 {
		n = 1
	}
	own := m.ServiceOf(i)
	for d := range n {
		service := own
		if d > 0 || own >= m.Large.Services+m.Services {
			service = m.Large.Services + (max(0, own-m.Large.Services)+d*m.Namespaces)%m.Services
		}
		name := fmt.Sprintf("%s:80", m.Host(service))
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
