// Package snapshot holds the state of the mesh: what all configuration is computed from.
//
//	ingest ──Change──► Builder ──► View{Snapshot, EndpointTable} ──► planner, shards
//
// A Snapshot is an immutable view of all values but endpoints, with the indexes that planning asks; an EndpointTable is
// the same for endpoints and workloads. Both are path-copied: the next one shares all that did not change. A View joins
// one of each behind one atomic pointer. A Delta names what differs between two Views, or says All.
package snapshot
