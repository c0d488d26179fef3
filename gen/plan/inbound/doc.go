// Package inbound makes what each workload has of its own: the overlay over what its Scope's proxies share.
//
//	Facts ─► Tables.Overlay ─► Overlay ─► Edits ─► the Scope's clusters and listeners become those of the class
//
// An overlay has the clusters and filter chains of the ports that the workload serves: those that its Sidecar object
// declares, else those of its services. It also takes away the outbound listener at the workload's own address.
// Everything that it depends on is in the Facts and the Snapshot; it never depends on what the Scope's other resources
// are, so that a policy or a port of one workload changes nothing outbound (invariant I15 of docs/architecture.md).
//
// There is an overlay for nearly every workload. It therefore holds no bytes: clusters and chains of a kind share one
// encoding with places for names, and an overlay has the names. They are put together when they are sent.
//
// Overlay is a pure function but for the Tables, which are safe for concurrent use.
package inbound
