package value

import (
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// KindGateway is Istio's Gateway; the Gateway API has a kind of that name too.
const KindGateway Kind = "Gateway.networking.istio.io"

// Gateway is an Istio Gateway. Server hosts are "namespace/host" with namespace "*" or a name ("." resolved).
type Gateway struct {
	Meta
	Spec *networking.Gateway
}

// Kind is KindGateway.
func (g *Gateway) Kind() Kind { return KindGateway }

// Object is the key of the Gateway.
func (g *Gateway) Object() ObjectKey { return g.Meta.Object(g.Kind()) }

// Equal reports whether two gateways are the same.
func (g *Gateway) Equal(o *Gateway) bool {
	return g == o || g.Meta == o.Meta && proto.Equal(g.Spec, o.Spec)
}
