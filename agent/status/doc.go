// Package status answers who asks about the pod at the agent's port: the kubelet, which wants to know whether the pod
// and its application are well, and Prometheus, which gets the metrics of Envoy, the agent and the application in one
// answer. What changes something, and pages for those who look for a fault, answer to the pod's own processes alone.
package status
