// Package parts holds the real counterparts that end-to-end tests put pilotd between:
// a Kubernetes API server, Envoys, secret discovery, echo backends, and pilotd itself
// as the process that users run. Each is one type in one file, each lives as long as
// the test that started it, and each prints what it logged when that test fails.
//
// The programs are named by the environment: PILOTD, ENVOY, APISERVER; `make e2e` sets
// all three. A program that is missing fails the test: nothing here is ever skipped.
//
// Tests wait for conditions with Eventually, which is the only place that waits.
package parts
