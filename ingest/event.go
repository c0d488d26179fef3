package ingest

import (
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Event is one object as a source has it now. Sources send the whole object each time; which events repeat or come in
// which order does not matter: the Store's state is a function of the last event of each (Source, Key).
type Event struct {
	// Source is the name of the source: "kube", or the path of a directory.
	Source string
	Key    value.ObjectKey
	// Object is the typed object: k8s.io/api types for core kinds, istio.io/client-go types (networking/v1) for Istio's
	// kinds, *meshconfig.MeshConfig as YAML text (string) for KindMeshConfig; or what a Stripper makes of it; NotServed
	// for kinds that are not served. nil deletes.
	Object any
	// Where is the file and line of an object from a file, "dir/a.yaml:12"; empty for others.
	Where string
}

// Rejection says why an object, or a file, is not in force as it stands now.
type Rejection struct {
	Source string
	Key    value.ObjectKey
	// Where is as in Event; of a file that does not parse it is all there is.
	Where string
	// Field is the path of the offending field, "spec.http[0].route"; empty when the whole object is meant.
	Field string
	// Cause is why, where it is not simply that the object is invalid or the file does not parse.
	Cause report.Cause
	// Reason says what is wrong and what was expected.
	Reason string
}

// Sink takes what a source reads. The Store implements it.
type Sink interface {
	// Apply takes events that are to become visible together. It may wait for the Store, never for a push.
	Apply(events []Event)
	// Reject reports what a source cannot even read, and Accept takes that back once the location (Where without its line)
	// reads again.
	Reject(r Rejection)
	Accept(source, location string)
	// Synced tells that the source has handed over everything that it had when it started.
	Synced(source string)
}
