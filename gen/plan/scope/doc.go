// Package scope answers what the proxies with some Facts may see, and what of it a change affects.
//
//	Facts ─ New ─► Scope ─┬─ Service, Services, Rule ──────► what a host means for the proxies, and under which rule
//	                      ├─ Imports, Hosts, Candidates ───► how far an explicit scope reaches: it costs what it imports
//	                      └─ OnPort ─► PortView ─► Owner ──► who has which virtual host on a port, under which domains
//
//	Delta ─ AffectedBy ─► Affected ─► the hosts and ports whose clusters, listeners or virtual hosts may differ
//
// A Scope holds no state of the mesh: every question takes the Snapshot, and the answer is a function of both. Whatever
// reads the Scope's namespace asks through In or Sees, so that the outsider's Scope notes its Insiders: the namespaces
// for which the answer would be another one.
//
// A Memo spares the next Scope a search in the same Snapshot. It and the Insiders belong to the planner's goroutine;
// all else is immutable, or safe for concurrent use.
package scope
