// Package e2e holds the end-to-end tests: pilotd as a process between a real
// kube-apiserver (or a directory of YAML) and real Envoys and gRPC clients, which carry
// traffic between pods of a network that the tests make for themselves.
//
// They need no root and nothing that runs already; `make e2e` fetches and builds the
// programs. Package testnet is the network, package parts the programs.
package e2e
