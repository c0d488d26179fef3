// Package directory is a mesh as a directory of YAML that a control plane watches, and the edits that load tests make
// there.
//
//	DIR/loadtest.shape        the shape that the rest is made from
//	DIR/cluster.yaml          namespaces and nodes
//	DIR/<namespace>.yaml      everything in a namespace but what is live
//	DIR/live/*.yaml           what is edited while a test runs: each file one object
//
// An edit replaces a file by renaming, so that nobody reads half of it; the moment of the rename is the moment of the
// change.
package directory
