// Package istio converts Istio's messages into values. It is the only way into values for what users write in Istio's
// API: code behind it does not know which API an object came from.
//
//	networking.VirtualService ── Routing ──► value.Routing
//	networking.DestinationRule ─ Policy ───► value.DestinationPolicy
//	networking.Gateway ───────── Gateway ──► value.GatewaySettings
//	networking.Sidecar ───────── Sidecar ──► value.SidecarSettings
//	mesh.MeshConfig ──────────── Mesh ─────► value.Mesh
//
// The functions are pure. Their input has passed the checks of package ingest, and its names are resolved. The values
// share strings, lists and maps with the message, which must not be written afterwards. Equal messages make equal
// values.
package istio
