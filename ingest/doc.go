// Package ingest owns the raw objects: it takes them from sources (a Kubernetes API server, a directory of YAML),
// validates them, turns them into values, and hands what really changed to the snapshot builder.
//
//	ingest/kube ─┐                        ┌─ values, projections ─► snapshot.Builder (config lane)
//	             ├─ Event ─► Store ───────┤
//	ingest/file ─┘             │          └─ endpoints, workloads ► snapshot.Builder (endpoint lane)
//	                           └─ Rejection: object, field, reason; the last good version stays in force
//
// The Store is the one place that joins objects: slices with pods, nodes and services, ServiceEntries with the
// workloads that they select.
//
//	Node ──► Pod ───┬─► EndpointSlice ──► Service ──┐
//	                └─► ServiceEntry ◄─┐            ├─► host: value.Service, endpoints, projection
//	WorkloadEntry ─────────────────────┴─► Service ─┘
//
// Inside, the Store holds the versions of each source and says which is in force; a joiner, which decides purely, joins
// those in force. put marks what an object may have changed, along the arrows above and by indexes, and flush computes
// what is marked anew from the objects: the order in which objects come cannot matter, and a missing object (a slice
// before its Service, an endpoint before its Pod) is just one that is not there yet. What flush computes is compared
// with its predecessor, which is kept where the used fields are equal, so that annotations, status, managedFields and
// resourceVersion never cause a push.
//
// An object is refused if Envoy would refuse what is made of it, if istiod's validation refuses it, or if no API server
// would store it; a Rejection names the field, and the last good version stays in force. The rules of Istio's CRDs
// (package ingest/crd) are applied to objects from a directory only: for others the API server has applied those of its
// own CRDs. What Envoy's texts may look like is package envoytext.
//
// A kind is described once, by a Kind: how the API calls it, how it is decoded, stripped and checked, what its value is
// and how values are compared. Sources, the Store, metrics, pages and docs/api-support.md read the descriptions. To add
// a kind, write its value in package value (the type, its Kind, Object and Equal), its description here (a function
// that Kinds calls, with the check and what makes the value), and the generator that reads the value, by snapshot.Get,
// All or In. Then name its fields in ingest/support/fields.txt, and let the tests of ingest/support and ingest/crd
// write docs/api-support.md and schemas.json anew (-update).
//
// Whether an object is admitted depends on the object alone. Conflicts between objects are decided by the same rules
// always:
//   - one key in several sources: the source that was named first to NewStore of those that hold the object; when it is
//     deleted there, the next source's comes into force;
//   - one object in several clusters: these are as many objects, for the cluster is part of the key. What they name of
//     each other is looked for in their own cluster;
//   - one host in one namespace from several objects: a Kubernetes Service first, then an object of pilotd's own
//     cluster, then the oldest, then by name. The first decides; ports and addresses that only others have are added,
//     and the endpoints of all count;
//   - one address in several slices of a Service: counts once for each port, where it is healthiest;
//   - one address of several workloads: see joiner.workloadAt.
//
// Sources call the Store from any goroutine; it hands Deltas over one at a time, under its lock, in the order in which
// it applied events. A source must not write an object that it has sent.
package ingest
