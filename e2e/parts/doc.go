// Package parts has what end-to-end tests run pilotd with: a Kubernetes API server, Envoys, secret discovery, echo
// backends, and pilotd itself as the process that users run. Each is one type in one file, runs until the end of the
// test that started it, and prints its log if that test fails.
//
// Environment variables name the programs: PILOTD, ENVOY, APISERVER, …; `make e2e` sets them. A missing program fails
// the test: nothing here is ever skipped.
//
// Tests wait for conditions with Eventually, which is the only place that waits.
package parts
