// Package report is the registry of what is wrong with objects: one place that can say which object, which field, why,
// since when, and which clients said so, whichever part of pilotd found it.
//
//	ingest      an object is refused when it is read        ─┐
//	ingest      a field is set that pilotd does not serve   ─┤                ┌─► one log line for each, rate-limited
//	gen/plan    what was made of an object breaks a rule    ─┼─ Set, Refuse ─►├─► metrics by kind and cause
//	shard       a client refused what was made of an object ─┤   (Registry)   └─► All: /debug/rejectionsz
//	anywhere    a panic left out what depends on an object  ─┘
//
// A Problem stands from the call that brings it until a call that no longer names it. Each owner replaces only what it
// said itself, so two owners can complain about one object without knowing of each other.
//
// All methods may be called by any goroutine. They hold a lock for the time of a few map accesses and never block on
// anything else: the logger that the Registry is given must not block either.
package report
