// Package report is the registry of problems of objects: the one place that knows for each object which field is wrong,
// why, since when, and which clients refused it, whichever part of pilotd found the problem.
//
//	ingest      an object is refused when it is read        ─┐
//	ingest      a field is set that pilotd does not serve   ─┤                ┌─► one log line for each, rate-limited
//	gen/plan    what was made of an object breaks a rule    ─┼─ Set, Refuse ─►├─► metrics by kind and cause
//	shard       a client refused what was made of an object ─┤   (Registry)   └─► All: /debug/rejectionsz
//	anywhere    a panic left out what depends on an object  ─┘
//
// A Problem stands from the call that reports it until a call that no longer contains it. Each owner replaces only its
// own reports, so two owners can report problems of one object independently.
//
// Any goroutine may call the methods. They hold a lock for a few map accesses and never block on anything else, so the
// Registry's logger must not block either.
package report
