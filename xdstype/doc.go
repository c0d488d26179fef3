// Package xdstype lists the resource types that are served, a row for each: what a type is called, and how clients of
// the protocol treat it. Sessions, shards, ResourceSets, metrics, debug pages and the load test read these rows; none
// of them has a list of types of its own.
//
// To add a type, add its row to standard and have its source fill the section of that row. Nothing else names types one
// by one, unless it has something to say about one of them in particular.
//
// The package imports nothing of this module, so that programs on the other side of the protocol can use it too.
package xdstype
