// Package xdsproxy stands between Envoy and the control plane: for each stream of Envoy it opens one upstream, on a
// connection of its own with the pod's newest token, and passes on what both say.
//
//	Envoy ── unix socket ──► Proxy ── TLS, token ──► control plane
//	          requests as they are; after the first for listeners, those of the agent itself: names, health
//	          responses of Envoy's types as they are; the name table stays here
//
// A response is handed to Envoy before the next is read, so that a slow Envoy slows the server and nothing piles up.
// When either side ends the other is ended too: Envoy comes back by its own back-off and says what it has. There is one
// stream at a time; a second one ends the first.
package xdsproxy
