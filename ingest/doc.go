// Package ingest owns the raw objects: it takes them from sources (a Kubernetes API server, a directory of YAML), validates them, turns them
// into values, and hands what really changed to the snapshot builder.
//
//	ingest/kube ─┐                        ┌─ values, projections ─► snapshot.Builder (config lane)
//	             ├─ Event ─► Store ───────┤
//	ingest/file ─┘             │          └─ endpoints, workloads ► snapshot.Builder (endpoint lane)
//	                           └─ Rejection: object, field, reason; the last good version stays in force
//
// The Store is the one place that joins objects: slices with pods, nodes and services, ServiceEntries with the workloads that they select.
// It compares each new value with its predecessor and keeps the predecessor when the used fields are equal, so that annotations, status,
// managedFields and resourceVersion never cause a push.
package ingest
