// Package nametable makes the name table of a Scope: what the agent beside a proxy answers DNS queries from.
//
//	Scope, Snapshot ─ keys ─► NamesKeys of each host ─► Fragments, in chunks ─► Table: the one resource
//	Table of a Scope that sees nearly the same, and the hosts that differ ──────┘
//
// A change of a host's names costs one Fragment and the chunk that it lies in, and all Scopes to which the host means
// the same share both. A change that names no other addresses leaves the Table as it is.
//
// The planner's goroutine makes each Table, which is immutable.
package nametable
