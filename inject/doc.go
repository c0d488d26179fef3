// Package inject decides what becomes of a pod that joins the mesh: which containers, volumes, labels and annotations
// it gets, under which settings. It is pure: an Injector is immutable, and equal Requests give equal Results.
//
//	Settings ──► New ──► Injector
//	                        │
//	Request ──► Inject:  may it?        host networking, namespace, label, policy, selectors
//	(a pod)              is it well?    every annotation is checked; a bad one is an error that names it
//	                     what is it?    workload, ProxyConfig, the pod as it was before an earlier injection
//	                     overlays       package overlay, one for each template
//	                     merge          strategic merge patch, in the templates' order
//	                     the user's own container of an injected name goes over it
//	                     after that     cluster and network, metrics, probes, status, order
//	                        │
//	                        ▼
//	                     Result ──► Patch, a JSON patch for an API server
//
// A pod that was injected before may be injected again: the result is the same, and what others have added since stays.
package inject
