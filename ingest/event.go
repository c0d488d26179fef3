package ingest

import (
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Event is the present state of one object in a source. Sources send the whole object each time. Events may repeat and
// come in any order of keys: the Store's state is a function of the last event of each (Source, Key).
type Event struct {
	// Source is the name of the source: "kube", or the path of a directory.
	Source string
	Key    value.ObjectKey
	// Object is the typed object: k8s.io/api types for core kinds, istio.io/client-go types (networking/v1) for Istio's
	// kinds, YAML text (string) of a *meshconfig.MeshConfig for KindMeshConfig, or what a Stripper makes of one of
	// these; NotServed for kinds that are not served. nil deletes the object.
	Object any
	// Where is the file and line of an object from a file, "dir/a.yaml:12"; empty for other sources.
	Where string
}

// Rejection says why the newest version of an object, or of a file, is not in force.
type Rejection struct {
	Source string
	Key    value.ObjectKey
	// Where is as in Event. For a file that does not parse it is the only location.
	Where string
	// Field is the path of the invalid field, "spec.http[0].route"; empty if the object as a whole is refused.
	Field string
	// Cause classifies the rejection if the object is not just invalid, or the file does not just fail to parse.
	Cause report.Cause
	// Reason says what is wrong and what was expected.
	Reason string
}

// Sink receives what a source reads. The Store implements it.
type Sink interface {
	// Apply takes events that must become visible together. It may block on the Store's lock, but never on a push to
	// proxies.
	Apply(events []Event)
	// Reject reports something that a source cannot read at all. Accept withdraws it once the location (Where without
	// its line) can be read again.
	Reject(r Rejection)
	Accept(source, location string)
	// Synced tells the Sink that the source has handed over everything that it had when it started.
	Synced(source string)
}
