package xdstype

import "google.golang.org/protobuf/encoding/protowire"

// standard returns the rows of the types that are served, in the order in which they are sent.
func standard() [NumStandard]Row {
	return [NumStandard]Row{
		Cluster: {
			URL: ClusterURL, Short: "CDS", Noun: "cluster",
			Complete: true, Wildcard: true, Removal: Last,
			Follows: None, Warms: None, Mentions: None,
			Errors: Errors{List: "Error adding/updating cluster(s) ", Separator: ", ", NameField: "name"},
		},
		Endpoint: {
			URL: EndpointURL, Short: "EDS", Noun: "endpoint", Source: FromEndpoints,
			Removal: Last,
			Follows: Cluster, Warms: Cluster, Mentions: None,
			Errors: Errors{NameField: "cluster_name"},
		},
		Listener: {
			URL: ListenerURL, Short: "LDS", Noun: "listener",
			Complete: true, Wildcard: true, Removal: AtOnce,
			Follows: Cluster, Warms: None, Mentions: None,
			// Filter chains. Without one of its inbound chains, connections to a sidecar would be taken by a chain that
			// is meant for others.
			Parts: Parts{Noun: "filter chain", Field: 3, Names: [2]protowire.Number{7, 1}, Needed: true,
				WholeForSidecars: true},
			Errors: Errors{List: "Error adding/updating listener(s) ", Separator: "\n", NameField: "name"},
		},
		Route: {
			URL: RouteURL, Short: "RDS", Noun: "route",
			Removal: Last, Empty: emptyRoute,
			Follows: Listener, Warms: None, Mentions: Cluster,
			Parts:  Parts{Noun: "virtual host", Field: 2, Names: [2]protowire.Number{1}},
			Errors: Errors{NameField: "name"},
		},
		NameTable: {
			URL: NameTableURL, Short: "NDS", Noun: "name table",
			// The one resource has no name, and replaces the one before: a response without it would never be answered,
			// and would clear nothing. Where there are no names it is there, and empty.
			OnDemand: true, Wildcard: true, Removal: Last,
			Follows: Listener, Warms: None, Mentions: None,
		},
		Secret: {
			URL: SecretURL, Short: "SDS", Noun: "secret", Source: FromIdentity,
			// Clusters and listeners wait for their secrets, so that these wait for nothing.
			Removal: AtOnce,
			Follows: None, Warms: None, Mentions: None,
			Errors: Errors{NameField: "name"},
		},
	}
}

// Field numbers of envoy.config.route.v3.RouteConfiguration.
const (
	routeName             = 1
	routeValidateClusters = 7
)

// emptyRoute returns the route configuration that a sidecar gets for a name that does not exist, as istiod gives it:
// the name, and validate_clusters false. Without it a listener that names it would wait. The name is any bytes that a
// client sent.
func emptyRoute(name string) []byte {
	msg := protowire.AppendTag(nil, routeName, protowire.BytesType)
	msg = protowire.AppendString(msg, name)
	msg = protowire.AppendTag(msg, routeValidateClusters, protowire.BytesType)
	return protowire.AppendBytes(msg, nil)
}
