// Package testnet is the network that end-to-end tests live in: real addresses, no
// root, nothing in common with the machine outside.
//
//	user + network namespace of the test process
//	┌────────────────────────────────────────────────────────────────┐
//	│ pilotd, API server        bridge mesh0 10.244.0.1/16           │
//	│                          ┌──────┴───────┬─────────────┐        │
//	│            pod 10.244.1.1│  10.244.1.2  │  10.244.2.1 │        │
//	│            ┌─────────────┴┐┌────────────┴┐┌───────────┴─┐      │
//	│            │ app -> Envoy ││ Envoy -> app││   gateway   │      │
//	│            └──────────────┘└─────────────┘└─────────────┘      │
//	└────────────────────────────────────────────────────────────────┘
//
// Run starts the test binary again inside; it is the whole of a TestMain. Each Pod has
// a network namespace of its own, so that every Envoy binds the ports that it binds in
// a cluster. Capture writes into a Pod the redirections of Istio's init container.
//
// An application is told from its Envoy by destination and mark, for a user namespace
// of an unprivileged user has one user only: connections to service addresses are
// redirected whoever opens them (Envoy dials endpoints, never service addresses), and
// so is whatever Pod.DialContext opens, which marks its sockets.
//
// All that this package makes lives as long as the test that asked for it. There is no
// way out of the network. Its resolver knows the control plane's name, and answers that no
// other exists, as a cluster's does for a name that nobody has.
package testnet
