// Package scenario lets a fleet of simulated sidecars live through what happens to a mesh, and measures it.
//
//	Run ─► connect ─► endpoint ─► route ─► churn ─► idle      each a Phase of the Report
//	          │          └── edits the Directory, and waits for every client to have the change
//	          └── clients ──► receipts ──► tracker: which client has which change since when
//
// A change is known by its mark: a number that the edited object carries into the resources that are made of it. So a change counts as
// received when its content is there, whatever else was pushed before. A client that never gets a change because the next one overtook it
// has it when it gets that one: the time counts from the oldest change that it had not seen.
package scenario
