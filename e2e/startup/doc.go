// Package startup measures how pilotd comes up beside a real API server that holds a
// large mesh: from the start of the process to the first complete answer to a client.
//
//	fill ─► etcd ◄─ kube-apiserver ─► pilotd ─► one simulated Envoy
//	                     └──────────► bare reader: the same streams, thrown away
//
// The mesh is written into etcd past the API, in the API server's own storage format:
// 30,000 pods take seconds, not minutes. Only the CRDs go through the API.
//
// The bare reader says what the API server alone takes to send the same objects: the
// limit for everybody who reads from it.
package startup
