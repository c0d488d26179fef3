// Package bench holds the benchmarks of whole paths: what a change costs from where it comes in to where every client
// has it, against the null server, which is what grpc-go allows.
//
//	generated mesh ──► ingest ──► snapshot ──► plan ──► shards ──► streams ──► fleet
//	                                                    built bytes ──► nullserver ──► fleet
package bench
