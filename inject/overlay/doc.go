// Package overlay makes what injection lays over a pod: a partial pod, which package inject merges onto the user's pod
// by a strategic merge patch.
//
//	Data ──┬─ Builtin(name)   sidecar, gateway, grpc-agent, grpc-simple: Go code that builds typed objects
//	       └─ Template.Execute a custom template: text/template with Istio's data and functions, YAML out
//
// Both are pure: equal Data give equal overlays. Nothing here reads a clock, an environment or a network, and the
// functions that templates may call include none that do. What a template makes of a list of a map's keys or values
// (sprig's keys, values) is in any order unless the template sorts it.
package overlay
