// Package xdsproxy relays xDS between Envoy and the control plane: for each stream that Envoy opens, it opens one
// upstream stream on a connection of its own, with the pod's newest token, and forwards messages in both directions.
//
//	Envoy ── unix socket ──► Proxy ── TLS, token ──► control plane
//	          requests as they are; after the first for listeners, those of the agent itself: names, health
//	          responses of Envoy's types as they are; the name table stays here
//
// A response is handed to Envoy before the next one is read, so a slow Envoy slows the server down and no responses
// queue up. When one side ends, the proxy ends the other too; Envoy reconnects with its own back-off and says what it
// has. Only one stream exists at a time: a second one ends the first.
package xdsproxy
