// Package pod reads what a pod says about itself and its proxy, once, at the start of the agent:
//
//	etc/istio/pod/{labels,annotations}   downward API ─┐
//	environment                                        ├─► Read ──► Pod: names, addresses, ProxyConfig, Node
//	etc/istio/config/mesh, PROXY_CONFIG, annotation ───┘
//
// A Pod is immutable. What it cannot read is an error with its name; what has no effect here is a warning.
package pod
