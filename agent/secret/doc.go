// Package secret keeps what an Envoy proves and trusts: the workload's certificate, and files that configuration names.
//
//	CSR ─► control plane ─► Requested ─┐
//	                                   ├─► Cell of Material ─► names default and ROOTCA ─┐
//	mounted files ────────► Mounted ───┘                                                 ├─► Secrets.Get ─► SDS
//	files that are named ─► Files ──────► names file-cert:… and file-root:… ─────────────┘
//
// Keys are made here and never leave the pod. Requested and Mounted each run on one goroutine; readers get what is
// there and a channel that is closed when it is no longer the newest.
package secret
