// Package workload finds the workload behind a proxy in a View.
//
//	View, Proxy ─ Of ─► Workload ─┬─ Labels, Sidecar   which rules select it
//	                              ├─ Targets           which service ports it serves, and at which of its own
//	                              └─ DependsOn         whether a service that changes may change any of it
//
// What the registry says of a workload wins over what its proxy says of itself: a proxy is not to choose the policies
// that apply to it. Everything here is a function of the View and the Proxy. The package has no state and may be called
// by any goroutine.
package workload
