// Package envoy runs the pod's Envoy process: it starts it, uses its admin page, and ends it.
//
//	Start ──► running ──(Drain)──► draining ──(connections end, or time)──► killed
//	             └──────────── Envoy ends by itself: Wait returns, and so does the agent ──┘
//
// Envoy is started once. When it exits, the agent exits too, and the kubelet restarts both with its own back-off.
package envoy
