// Package pod reads the settings and the description of the pod and its proxy, once, when the agent starts:
//
//	etc/istio/pod/{labels,annotations}   downward API ─┐
//	environment                                        ├─► Read ──► Pod: names, addresses, ProxyConfig, Node
//	etc/istio/config/mesh, PROXY_CONFIG, annotation ───┘
//
// A Pod is immutable. A setting that cannot be parsed is an error that names it; one that has no effect here is a
// warning.
package pod
