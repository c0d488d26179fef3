// Package directory writes a mesh as a directory of YAML for a control plane to watch, and makes the edits of load
// tests there.
//
//	DIR/loadtest.shape        the shape that the rest is made from
//	DIR/cluster.yaml          namespaces and nodes
//	DIR/<namespace>.yaml      everything in a namespace that edits do not change
//	DIR/live/*.yaml           what edits change: one object in each file
//
// An edit replaces a file by renaming, so that no reader finds half a file. The moment of the rename is the moment of
// the change.
package directory
