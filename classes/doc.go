// Package classes defines what the proxies of each class should have. A planner produces it and shards consume it, so
// that neither needs to know the other.
//
//	gen/plan ──► Sink: Class → ResourceSet, EndpointTable ──► shard
//	             ResourceSet = Sections of Entries, encoded in advance
//	                         + Assignments, which are joined with the newest EndpointTable when they are sent
package classes
