// Package value holds the validated, immutable form of every object that pilotd reads.
//
// A value is made by ingest, handed to the snapshot builder, and from then on never written again: every pointer to one
// may be read by any goroutine. Two values that came from objects with equal used fields are one pointer, because the
// owner of an object compares a new value with its predecessor and keeps the predecessor when they are Equal.
// Downstream therefore reads "same pointer" as "unchanged"; a different pointer means nothing.
//
// Values are the inputs of generators: a Key of package gen is a comparable struct of scalars and pointers to values.
// Host names in values are fully qualified and lower case; references to other objects are resolved to
// "namespace/name".
package value
