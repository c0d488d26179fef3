// Package secrets has what gateways ask the control plane for: certificates with their keys, and roots, out of Secrets
// and ConfigMaps.
//
//	Files, an API server ───────────►┐
//	identity and names of a client ─►├ Store ─► View: what the identity gets of these names
//	Rights: may it list Secrets? ───►┘
//
// An object is held only while somebody who may read it asks for it: the Store tells its Sources which it wants. Who
// may read what is decided by the proven identity alone, never by what a client says of itself: the objects of its own
// namespace, and of Secrets those that the cluster lets it list (a SubjectAccessReview), with the exception of roots,
// which are no secret. What a right was found to be holds for some minutes.
//
// What cannot be used is left out alone, and Options.Trouble is told why, in words that have nothing of the object's
// content. Keys leave the package in encoded resources only, which no table and no page has.
//
// Nothing that workers call blocks, or costs more for more names: reading, parsing, looking at names and asking is done
// by goroutines of the Sources and of Store.Run. A View whose names are much like those of the one before shares the
// chunks of names (run) that both have, so that a change of a list costs what differs:
//
//	View ─┬─ run ─┬─ name ─► item, the resource as the namespace gets it ─► object ─► Source
//	View ─┴─ run  └─ name ─► item
package secrets
