// Package secret keeps the secrets of an Envoy: the workload's certificate and roots, and files that its configuration
// names.
//
//	CSR ─► control plane ─► Requested ─┐
//	                                   ├─► Cell of Material ─► names default and ROOTCA ─┐
//	mounted files ────────► Mounted ───┘                                                 ├─► Secrets.Get ─► SDS
//	files that are named ─► Files ──────► names file-cert:… and file-root:… ─────────────┘
//
// Private keys are made here and never leave the pod. Requested and Mounted each run on one goroutine. Readers get the
// current value and a channel that is closed when a newer one is there.
package secret
