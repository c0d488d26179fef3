// Package agent runs beside an application, or as a gateway: it starts Envoy, provides its certificate and its
// connection to the control plane, answers readiness checks, metrics and probes for the pod, and ends Envoy when the
// pod ends.
//
//	pod        what the pod says about itself ─► bootstrap ─► envoy: the process
//	secret     certificates ─► sds ─────────────────────────► │ over a unix socket
//	xdsproxy   configuration of the control plane ───────────► │ over another
//	dns        names of the mesh, for the application ◄── xdsproxy
//	capture    the rules that send the pod's traffic through Envoy; by a command of its own, before all this
//	status     ready?, metrics, probes of the application ◄── kubelet, Prometheus
//
// Run puts these together. Paths are relative to the working directory, as in the images of Istio's proxy, whose pods
// the agent can run in unchanged. docs/agent.md says what it reads, asks and answers.
package agent
