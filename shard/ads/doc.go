// Package ads is the protocol of one xDS stream as a pure state machine: State-of-the-World and Delta, for CDS, EDS,
// LDS and RDS.
//
//	Request ──► Session ──► Effects (send this Batch, report that refusal)
//	Desired ──►    ▲
//	time    ───────┘ Tick
//
// A Session is told of requests, of what its client should have (Desired), of changed endpoints and of time, and
// answers with Effects. It has no goroutine, clock, lock or I/O, and asks nobody anything but its arguments. It keeps
// no map of resources: what the client has of a type is one pointer to Resources (a persistent section that many
// Sessions point to) and an interned subscription.
//
// What differs between two Resources for one subscription is worked out by a Differ, which the worker that owns many
// Sessions hands to each call. While the worker is in one pass, Sessions that ask the same question get the same
// *Batch: one list of resources, one nonce, one assembled response.
//
// # Refusals
//
// A response that its client refuses is corrected at once: what is bad goes back to the version that the client
// accepted last, or away, and all else is sent again. What is bad is what the error's text accuses, in the forms that
// clients really write (accuse.go), or what halving finds (search.go). The search goes on inside route configurations,
// and inside the listeners of gateways, down to one virtual host or one filter chain; that part alone is held back
// until its content changes or its object is gone, and whatever else changes in the resource is sent meanwhile.
//
// What is found is a verdict about (type, name, part, content), which all Sessions of a process share (verdict.go). A
// verdict has one use: a Session whose own client has just refused a response looks there before it searches. So
// nothing that one client says changes what any other is sent, until that other refuses something that holds it; and if
// more than that was needed to explain the refusal, what is known by hearsay alone is tried again. Verdicts and
// searches are bounded for each stream and for the process.
//
// The rules come from the behaviour of real clients; testdata has a transcript for each.
package ads
