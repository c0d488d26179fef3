// Package istio turns Istio's messages into values. It is the only way in which what users write in Istio's API enters
// a value: behind it nobody knows of which API an object is.
//
//	networking.VirtualService ── Routing ──► value.Routing
//	networking.DestinationRule ─ Policy ───► value.DestinationPolicy
//	networking.Gateway ───────── Gateway ──► value.GatewaySettings
//	networking.Sidecar ───────── Sidecar ──► value.SidecarSettings
//	mesh.MeshConfig ──────────── Mesh ─────► value.Mesh
//
// The functions are pure. They take messages that the checks of package ingest admitted, with names already resolved,
// and share the texts, lists and maps of the message, which must not be written afterwards. Equal messages make equal
// values.
package istio
