// Package bootstrap builds the configuration that Envoy starts with: its node, the unix sockets of the agent that serve
// its configuration and its secrets, its admin page, its readiness and metrics listeners, which statistics it keeps,
// and its tracer if ProxyConfig names one. The control plane sends everything else.
//
// The package does no I/O: equal inputs give equal configurations.
package bootstrap
