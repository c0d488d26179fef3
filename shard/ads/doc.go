// Package ads is the protocol of one xDS stream as a pure state machine: State-of-the-World and Delta, for CDS, EDS, LDS and RDS.
//
//	Request ──► Session ──► Effects (send this Batch, report that refusal)
//	Target  ──►    ▲
//	time    ───────┘ Tick
//
// A Session is told of requests, of new Targets (what its client should have), of changed endpoints and of time, and answers with Effects.
// It has no goroutine, clock, lock or I/O, and asks nobody anything but its arguments. It keeps no map of resources: what the client has
// of a type is a Content (a persistent section that many Sessions point to) and an interned subscription.
//
// What differs between two Contents for one subscription is worked out by a Book, which the worker that owns many Sessions hands to each
// call. While the worker is in one pass, Sessions that ask the same question get the same *Batch: one list of resources, one nonce, one
// assembled response.
//
// The rules come from protocol.md; testdata has a transcript for each.
package ads
