// Package checked holds what is made to be sent, checks it once, and keeps account of what is left out.
//
//	Key ─► Table ─► encode, check ─┬─ passes ─► Fragment, Entry or Template, for all who ask for the Key
//	                               └─ fails, panics ─► an empty value, and a Fault of the objects behind the Key
//
// A Table makes the value of a Key once, while anybody holds it, and checks it when it is made: no message leaves that
// its receiver must refuse (invariant I12 of docs/architecture.md). What fails is left out alone. Contain does the same
// for a larger unit of work: a panic in it stops that unit and nothing else (I14).
//
// Faults is the account. A Fault stands as long as the objects that it comes from stay as they are. Whoever plans a
// change calls Begin before it and Settle after it: the faults of the changed objects whose Keys nobody asks for in
// between are gone. Who was given to Tell learns the faults of an object whenever they change.
//
// Everything here is safe for concurrent use. Only the making of a value takes time; two who ask for one Key wait for
// one making. The function given to Tell is called with a lock held: it must not block, nor ask for a Key.
package checked
