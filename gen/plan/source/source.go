// Package source says what makes the resources of a type that a Scope has as a whole, beside clusters, listeners and
// routes.
//
// To serve such a type, write its Source and name it in the list of package plan. Whatever else a type has, its row in
// package xdstype tells.
package source

import (
	"iter"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// At is a Scope at a Snapshot.
type At struct {
	Scope    *scope.Scope
	Snapshot *snapshot.Snapshot
}

// Part is what a Source has made for a Scope at a Snapshot: an immutable, comparable value. Equal Parts hold the same
// resources; different ones may.
type Part interface {
	// Section is the section of the Source's type.
	Section() (xdstype.Type, chunked.Map[*encodecache.Entry])
}

// Source makes Parts. What it makes is a function of the Scope and the Snapshot alone, whichever way it was made. Its
// methods are called by the planner's goroutine.
//
// A Part may depend on the Scope's namespace by nothing but what is exported to it: other namespaces share what an
// outsider has.
//
// The Source of a type whose row says that it is made on demand is called only while clients ask for the type.
type Source interface {
	// Type is the type of the resources.
	Type() xdstype.Type
	// Make makes a Part from nothing.
	Make(at At) Part
	// Advance makes a Part out of the one of from: another Snapshot for the same Scope, or the same Snapshot for
	// another Scope. hosts are those of which services or endpoints may differ. It returns old if nothing does.
	Advance(old Part, from, to At, hosts iter.Seq[string]) Part
	// Follow returns what makes a Part out of one where everything differs that makes is another one than was, and
	// nothing else.
	Follow(was, is Part) func(old Part) Part
	// Sizes are how much it keeps, by the noun.
	Sizes() map[string]int
}
