// Package nametable makes the name table of a Scope: what the agent beside a proxy answers DNS queries from.
//
//	Scope, Snapshot ─ keys ─► NamesKeys of each host ─► Fragments ─┐
//	                                                               ├─► Table: the one resource, made when asked for
//	Table of a Scope that sees nearly the same, and what differs ──┘
//
// A Table costs nothing until somebody asks for its resource: it only says of what it would be made. Once it was asked
// for, the Tables that follow it are made at once, out of what differs. So a change of one service costs one Fragment
// and the chunk that it lies in, and all Scopes to which the service means the same share both.
//
// Tables and Table are safe for concurrent use. Whoever asks for the resource first makes it; others wait for that.
package nametable
