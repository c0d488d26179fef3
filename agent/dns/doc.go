// Package dns answers the pod's DNS queries: for names of the mesh from the name table of the control plane, for all
// others by asking the servers that the pod would ask.
//
//	NameTable ─► Compile ─► Names, immutable ─┐
//	resolv.conf ─► Resolver, followed ────────┴─► Server, UDP and TCP ─► the application
//
// Queries for addresses (A, AAAA) of a name that is in the table are answered from it, others pass. Until the first
// table is there all fail, so that nobody remembers that a name of the mesh does not exist.
package dns
