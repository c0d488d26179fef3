// Package mesh converts the meshes of loadtest/mesh to events for package ingest.
package mesh
