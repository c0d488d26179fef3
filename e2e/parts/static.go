package parts

import (
	"fmt"

	bootstrappb "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Static converts a dump to a configuration that needs no server: endpoints and routes are put into the clusters and
// listeners that refer to them. The result is a bootstrap for Validate.
func (d Dump) Static() (*bootstrappb.Bootstrap, error) {
	endpoints := make(map[string]*endpointpb.ClusterLoadAssignment)
	for _, e := range d.Endpoints {
		endpoints[e.ClusterName] = e
	}
	routes := make(map[string]*routepb.RouteConfiguration)
	for _, r := range d.Routes {
		routes[r.Name] = r
	}
	static := &bootstrappb.Bootstrap_StaticResources{Clusters: []*clusterpb.Cluster{{
		// Clusters and listeners name secrets, which nothing serves here.
		Name: "sds-grpc", ConnectTimeout: durationpb.New(1e9),
		ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: clusterpb.Cluster_STATIC},
	}}}
	for _, c := range d.Clusters {
		if c.GetType() == clusterpb.Cluster_EDS {
			c = proto.CloneOf(c)
			c.ClusterDiscoveryType = &clusterpb.Cluster_Type{Type: clusterpb.Cluster_STATIC}
			c.EdsClusterConfig = nil
			if c.LoadAssignment = endpoints[c.Name]; c.LoadAssignment == nil {
				return nil, fmt.Errorf("cluster %s has no endpoints, not even none", c.Name)
			}
		}
		static.Clusters = append(static.Clusters, c)
	}
	for _, l := range d.Listeners {
		var missing string
		l, err := eachHTTP(l, func(h *hcmpb.HttpConnectionManager) {
			if h.GetRds() == nil {
				return
			}
			r, ok := routes[h.GetRds().RouteConfigName]
			if !ok {
				missing = h.GetRds().RouteConfigName
				return
			}
			h.RouteSpecifier = &hcmpb.HttpConnectionManager_RouteConfig{RouteConfig: r}
		})
		if err != nil {
			return nil, err
		}
		if missing != "" {
			return nil, fmt.Errorf("listener %s: there is no route %s", l.Name, missing)
		}
		static.Listeners = append(static.Listeners, l)
	}
	return &bootstrappb.Bootstrap{
		Node:            &corepb.Node{Id: "validate", Cluster: "validate"},
		StaticResources: static,
	}, nil
}
