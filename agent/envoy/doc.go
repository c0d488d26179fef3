// Package envoy runs the pod's Envoy: starts it, asks its admin page, and ends it.
//
//	Start ──► running ──(Drain)──► draining ──(connections end, or time)──► killed
//	             └──────────── Envoy ends by itself: Wait returns, and so does the agent ──┘
//
// Envoy is started once. When it ends the agent ends with it, and the kubelet starts both again by its own back-off.
package envoy
