package value

// MTLSMode is what a port of a workload asks of its clients.
type MTLSMode uint8

// Modes. Permissive, mutual TLS and plain text alike, is the one without any policy.
const (
	Permissive MTLSMode = iota
	Strict
	Disabled
)
