// Package scenario runs a fleet of simulated proxies through events in a mesh, and measures how long they take.
//
//	Run ─► connect ─► endpoint ─► route ─► kill ─► …      each a Phase of the Report
//	          │          └── makes Edits, and waits for every client that they concern to have them
//	          └── clients ──► receipts ──► tracker: which client has which change since when
//	                                  └──► arrivals: who has everything
//
// A change is recognized by its mark, a number that the edited object carries into the resources made from it. So a
// change counts as received when its content arrives, whatever else was pushed before; a removal when the mark is gone.
// If a client skips a change because the next one has overtaken it, it has both when it gets the next one, and its
// latency counts from the oldest change that it had not seen. Marks repeat after the last one; the tracker takes a mark
// for the latest change that carried it.
package scenario
