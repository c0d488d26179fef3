package gen

import (
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// RouteConfigurationKey is what a RouteConfiguration depends on besides its virtual hosts.
type RouteConfigurationKey struct {
	Name string
	// Proxyless is for gRPC clients.
	Proxyless bool
}

// maxDirectResponseBody is the largest body of a direct response, as the API's validation allows it.
const maxDirectResponseBody = 1 << 20

// RouteConfiguration makes the configuration without its virtual hosts, which are further encoded fields.
func RouteConfiguration(k RouteConfigurationKey) *routepb.RouteConfiguration {
	if k.Proxyless {
		return &routepb.RouteConfiguration{Name: k.Name}
	}
	return &routepb.RouteConfiguration{
		Name: k.Name, ValidateClusters: wrapperspb.Bool(false),
		MaxDirectResponseBodySizeBytes: wrapperspb.UInt32(maxDirectResponseBody),
		IgnorePortInHostMatching:       true,
	}
}

// CatchAllKey is what the last virtual host of a sidecar's route configuration depends on: where requests go whose host
// is unknown.
type CatchAllKey struct {
	// CountAttempts adds the header x-envoy-attempt-count to requests.
	CountAttempts bool
	// Cluster is where they go; empty: they are refused.
	Cluster string
}

func catchAll(k CatchAllKey) *routepb.VirtualHost {
	name := "block_all"
	if k.Cluster != "" {
		name = "allow_any"
	}
	r := &routepb.Route{Name: name, Match: anyPath()}
	if k.Cluster == "" {
		r.Action = &routepb.Route_DirectResponse{DirectResponse: &routepb.DirectResponseAction{Status: 502}}
	} else {
		action := &routepb.RouteAction{ClusterSpecifier: &routepb.RouteAction_Cluster{Cluster: k.Cluster}}
		setTimeout(action, value.Duration{}, false)
		r.Action = &routepb.Route_Route{Route: action}
	}
	return &routepb.VirtualHost{Name: name, Domains: []string{"*"}, Routes: []*routepb.Route{r},
		IncludeRequestAttemptCount: k.CountAttempts}
}

// BlackholeKey is what the only virtual host of a gateway's route configuration depends on to which no VirtualService
// is bound.
type BlackholeKey struct{ Port int }

// blackhole makes that virtual host, which answers 404.
func blackhole(k BlackholeKey) *routepb.VirtualHost {
	return &routepb.VirtualHost{Name: k.Part(), Domains: []string{"*"}}
}
