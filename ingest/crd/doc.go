// Package crd judges objects by the schemas of Istio's CustomResourceDefinitions: types, enumerations, patterns,
// limits, and the rules in CEL. An API server does so before it stores an object. A directory has no API server, and a
// cluster may have the CRDs of another version, so pilotd does it itself, with the library that API servers use: an
// object gets the same verdict wherever it comes from.
//
// schemas.json has the schemas of those kinds that pilotd reads, without their descriptions. A test holds it against
// the file that module istio.io/api ships; `go test ./ingest/crd -update` makes it anew.
//
// A schema is compiled when the first object of its kind comes, which takes some tenths of a second, so that what
// nobody uses costs nothing.
package crd
