package mesh

import (
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Writer writes to the place of a mesh's objects: a directory, or an API server.
type Writer interface {
	// Write executes the writes of a change in order, and returns the moment of the one that carries the number.
	Write(Change) (time.Time, error)
}

// Editor edits a mesh through a Writer. Every edit carries a number from 1 to LastMark, and returns when it was made.
// Not safe for concurrent use.
type Editor struct {
	// Immutable after NewEditor.
	mesh   *Mesh
	writer Writer

	// Owned by the goroutine.
	live *Live
}

// NewEditor returns an Editor for an unedited mesh.
func NewEditor(m *Mesh, w Writer) *Editor { return &Editor{mesh: m, writer: w, live: m.Live()} }

// Mesh returns the mesh before any edit.
func (e *Editor) Mesh() *Mesh { return e.mesh }

// Lanes returns the number of services that can be edited: the first ones.
func (e *Editor) Lanes() int { return e.mesh.Lanes() }

// Reset forgets all edits. The caller has undone them in the place of the objects.
func (e *Editor) Reset() *Live {
	e.live = e.mesh.Live()
	return e.live
}

// Edit makes an edit.
func (e *Editor) Edit(edit Edit) (time.Time, error) {
	c, err := e.live.Edit(edit)
	if err != nil {
		return time.Time{}, err
	}
	return e.writer.Write(c)
}

// Endpoint adds an endpoint, whose address carries n, to a service < Lanes.
func (e *Editor) Endpoint(service, n int) (time.Time, error) {
	return e.Edit(Edit{Kind: Endpoint, Service: service, Number: n})
}

// Route edits the VirtualService of the first service: a path carries n.
func (e *Editor) Route(n int) (time.Time, error) { return e.Edit(Edit{Kind: Route, Number: n}) }

// AddRoute creates a VirtualService for a service that has none; its path carries n.
func (e *Editor) AddRoute(n int) (time.Time, error) { return e.Edit(Edit{Kind: AddRoute, Number: n}) }

// RemoveRoute deletes it.
func (e *Editor) RemoveRoute(n int) (time.Time, error) {
	return e.Edit(Edit{Kind: RemoveRoute, Number: n})
}

// Replace replaces the pod of workload i, whose service must be < Lanes.
func (e *Editor) Replace(i, n int) (time.Time, error) {
	if i < 0 || i >= e.mesh.Workloads() {
		return time.Time{}, fmt.Errorf("replace: workload %d of %d", i, e.mesh.Workloads())
	}
	s, pod := e.mesh.servicePod(i)
	return e.Edit(Edit{Kind: Replace, Service: s, Pod: pod, Number: n})
}

// Scale changes the number of pods of a service < Lanes.
func (e *Editor) Scale(service, pods, n int) (time.Time, error) {
	return e.Edit(Edit{Kind: Scale, Service: service, Pods: pods, Number: n})
}

// Successor returns the node of the sidecar in the pod that Replace(i, n) makes.
func (e *Editor) Successor(i, n int) *corev3.Node {
	s, pod := e.mesh.servicePod(i)
	return e.mesh.sidecarNode(s, instance{pod: pod, number: n, marked: true})
}
