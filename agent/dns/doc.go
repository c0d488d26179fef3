// Package dns answers the pod's DNS queries: names of the mesh from the name table that the control plane sends, all
// other names by asking the DNS servers that the pod would ask.
//
//	NameTable ─► Compile ─► Names, immutable ─┐
//	resolv.conf ─► Resolver, followed ────────┴─► Server, UDP and TCP ─► the application
//
// A query for addresses (A, AAAA) of a name in the table is answered from it; all others are forwarded. Until the first
// table has come every query fails, so that no client caches that a name of the mesh does not exist.
package dns
