package gen

import (
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// APIListenerKey is what a listener for gRPC clients is made from: no socket, only where the routes of a name are
// found.
type APIListenerKey struct {
	// Name is the "host:port" that the client dials.
	Name      string
	Address   string
	Port      int
	RouteName string
	// Defined is the object that defines the service.
	Defined value.ObjectKey
}

// APIListener makes the listener of a name that gRPC clients dial.
func APIListener(k APIListenerKey) *listenerpb.Listener {
	return &listenerpb.Listener{
		Name:    k.Name,
		Address: SocketAddress(k.Address, uint32(k.Port)),
		ApiListener: &listenerpb.ApiListener{ApiListener: anyOf(&hcmpb.HttpConnectionManager{
			StatPrefix:  k.RouteName,
			HttpFilters: HTTPFilters(HTTPConnectionManagerKey{Class: ProxylessClient}),
			RouteSpecifier: &hcmpb.HttpConnectionManager_Rds{Rds: &hcmpb.Rds{
				ConfigSource: &corev3.ConfigSource{
					ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
					ResourceApiVersion:    corev3.ApiVersion_V3,
				},
				RouteConfigName: k.RouteName,
			}},
		})},
	}
}

// ServerListenerKey is what a listener for gRPC servers is made from: the address at which the server listens, whether
// its clients must use mutual TLS, and which requests it takes. A server cannot take plain text beside mutual TLS.
type ServerListenerKey struct {
	Address   string
	Port      int
	MutualTLS bool
	Access    AccessKey
}

// Name returns the name by which a server asks for it.
func (k ServerListenerKey) Name() string {
	return "xds.istio.io/grpc/lds/inbound/" + net.JoinHostPort(k.Address, strconv.Itoa(k.Port))
}

// ServerListener makes the listener of a gRPC server: every request that is allowed goes to the application.
func ServerListener(k ServerListenerKey) *listenerpb.Listener {
	name, socket := "plaintext", (*corev3.TransportSocket)(nil)
	if k.MutualTLS {
		name, socket = "mtls", transportSocket("envoy.transport_sockets.tls", &tlspb.DownstreamTlsContext{
			CommonTlsContext: providedTLS(nil), RequireClientCertificate: wrapperspb.Bool(true)})
	}
	return &listenerpb.Listener{
		Name:    k.Name(),
		Address: SocketAddress(k.Address, uint32(k.Port)),
		FilterChains: []*listenerpb.FilterChain{{
			Name:            "inbound-" + name,
			TransportSocket: socket,
			Filters: []*listenerpb.Filter{packFilter("inbound-hcm"+name, anyOf(&hcmpb.HttpConnectionManager{
				StatPrefix:  "inbound",
				HttpFilters: HTTPFilters(HTTPConnectionManagerKey{Class: ProxylessServer, Access: k.Access}),
				RouteSpecifier: &hcmpb.HttpConnectionManager_RouteConfig{RouteConfig: &routepb.RouteConfiguration{
					Name: "inbound",
					VirtualHosts: []*routepb.VirtualHost{{
						Name:    "inbound",
						Domains: []string{"*"},
						Routes: []*routepb.Route{{
							Match:  &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
							Action: &routepb.Route_NonForwardingAction{NonForwardingAction: &routepb.NonForwardingAction{}},
						}},
					}},
				}},
			}))},
		}},
	}
}
