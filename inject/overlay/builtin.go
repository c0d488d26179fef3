package overlay

import (
	corev1 "k8s.io/api/core/v1"
)

// Builtin returns the template of pilotd's own with a name; none if there is none.
func Builtin(name string) func(*Data) (*corev1.Pod, error) {
	switch name {
	case "sidecar":
		return sidecar
	case "gateway":
		return gateway
	case "grpc-agent":
		return grpcAgent
	case "grpc-simple":
		return grpcSimple
	}
	return nil
}

// BuiltinNames returns the names of pilotd's own templates.
func BuiltinNames() []string { return []string{"gateway", "grpc-agent", "grpc-simple", "sidecar"} }
