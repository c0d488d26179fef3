// Package scenario lets a fleet of simulated proxies live through what happens to a mesh, and measures it.
//
//	Run ─► connect ─► endpoint ─► route ─► kill ─► …      each a Phase of the Report
//	          │          └── makes Edits, and waits for every client that they concern to have them
//	          └── clients ──► receipts ──► tracker: which client has which change since when
//	                                  └──► arrivals: who has everything
//
// A change is known by its mark: a number that the edited object carries into the resources that are made of it. So a
// change counts as received when its content is there, whatever else was pushed before; a removal when the mark is
// gone. A client that never gets a change because the next one overtook it has it when it gets that one: the time
// counts from the oldest change that it had not seen. Marks are finite and begin again; the tracker takes a mark for
// the latest change that said it.
package scenario
