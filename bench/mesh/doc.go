// Package mesh hands the meshes of loadtest/mesh to ingest, as the events of a source.
package mesh
