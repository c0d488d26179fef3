package ingest

import (
	"cmp"

	"istio.io/api/label"
)

// OfRevision reports whether a control plane of a revision, "default" when empty, reads an object of Istio's API with
// these labels: one that names no revision is for all of them, any other for the one that it names.
func OfRevision(labels map[string]string, revision string) bool {
	named, ok := labels[label.IoIstioRev.Name]
	return !ok || named == cmp.Or(revision, "default")
}
