// Package bootstrap makes the configuration that an Envoy starts with: who it is, where its control plane and its
// secrets are (both the agent, over unix sockets), its admin page, its readiness and metrics listeners, which
// statistics it keeps, and its tracer where ProxyConfig names one. All else comes from the control plane.
//
// It is pure: equal pods give equal configurations.
package bootstrap
