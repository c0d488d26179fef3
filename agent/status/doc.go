// Package status serves the agent's HTTP port: readiness and the probes of the application for the kubelet, and for
// Prometheus the metrics of Envoy, the agent and the application in one answer. Paths that change something and debug
// pages answer only clients in the same pod.
package status
