// Package support says what pilotd does with every field that objects can have, and finds those that an object sets
// without effect.
//
//	fields.txt ──► Table ──┬─► Unserved(message): what is set and not served
//	                       └─► docs/api-support.md, by the tests
//
// fields.txt is the one place where a field's state is written down. The tests hold it against the types of Istio's and
// Kubernetes's modules (every field is listed, and nothing that does not exist) and against the code (what is called
// served is read somewhere), so that neither a new version of a module nor a change of pilotd makes it untrue.
//
// A Table is immutable; any goroutine may use it.
package support
