// Package classes says what the proxies of each class should have. A planner gives it and shards take it; neither needs
// to know the other.
//
//	gen/plan ──► Sink: Class → ResourceSet, EndpointTable ──► shard
//	             ResourceSet = Sections of Entries, ready made
//	                         + Assignments, which are joined with the newest EndpointTable when they are sent
package classes
