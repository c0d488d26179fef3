// Package endpoints joins endpoints to the ClusterLoadAssignments that clients subscribe to.
//
//	Key ─► Tables.Get ─► Assignment           what it depends on but the endpoints: part of a ResourceSet
//	Assignment + EndpointTable ─► Entry       when it is sent, on the endpoint lane
//
//	set of endpoints ─► chunks of some 64 ─► encoded parts by locality ─► groups ─► header and parts, joined
//
// The endpoints of a service are cut into chunks whose ends depend on the endpoints alone, so that one endpoint that
// changes makes one chunk, and the others keep their encoded Fragments. Fragments are shared by all Assignments of one
// Selection, however they order the localities: weight and priority stand in the locality's header, which is the only
// thing that is made for each.
//
// Entry may be called by any goroutine; shards do. Callers that ask for the same set get one Entry, and wait for the
// one of them that joins it. An Assignment remembers the last two sets, for clients that are behind.
package endpoints
