package mesh

// EditKind is the kind of an Edit.
type EditKind int

const (
	// Endpoint adds an endpoint to the Service, whose address carries the number. It replaces the endpoint that an
	// earlier edit added.
	Endpoint EditKind = iota
	// Route edits the VirtualService of the first service: it gets one more route, whose path carries the number.
	Route
	// AddRoute creates a VirtualService for a service that has none; its path carries the number.
	AddRoute
	// RemoveRoute deletes what AddRoute created. It carries no number: it has arrived once the path of AddRoute is
	// gone.
	RemoveRoute
	// Replace replaces a pod of the Service, as each step of a rolling restart does: the new one has another name,
	// another pod template hash, and an address that carries the number.
	Replace
	// Scale changes the number of the Service's pods to Pods. The address of the first new pod carries the number;
	// removing pods carries none.
	Scale
)

func (k EditKind) String() string {
	return [...]string{"endpoint", "route", "add-route", "remove-route", "replace", "scale"}[k]
}

// Edit is a change of a mesh.
type Edit struct {
	Kind EditKind
	// Service is the edited service, < Lanes.
	Service int
	// Number is the number that the edited objects carry, 1 to LastMark.
	Number int
	// Pod is the index of the pod that Replace replaces, < Replicas of the service; Pods is the number of pods after
	// Scale.
	Pod, Pods int
}

// Write is an object to be written or deleted.
type Write struct {
	Object Object
	Delete bool
}

// Change is what an Edit does to the objects of a mesh, in order.
type Change struct {
	Writes []Write
	// Mark is the index of the Write that carries the number. The change happens when that is written.
	Mark int
}

func (c *Change) put(o Object)    { c.Writes = append(c.Writes, Write{Object: o}) }
func (c *Change) remove(o Object) { c.Writes = append(c.Writes, Write{Object: o, Delete: true}) }

// marked records that the last write carries the number.
func (c *Change) marked() { c.Mark = len(c.Writes) - 1 }

// maxLanes bounds the services that are edited during a test.
const maxLanes = 50

// Lanes returns the number of services that can be edited: the first ones.
func (m *Mesh) Lanes() int { return min(maxLanes, m.services()) }

// Replicas returns the number of pods of a lane before any edit.
func (m *Mesh) Replicas(service int) int { return m.replicas(service) }

// Unrouted returns the service whose VirtualService AddRoute makes; -1 if there is none.
func (m *Mesh) Unrouted() int { return m.unrouted() }

// ServiceOf returns the service of workload i.
func (m *Mesh) ServiceOf(i int) int {
	s, _ := m.servicePod(i)
	return s
}

// unrouted returns the first service without a VirtualService; -1 if there is none.
func (m *Mesh) unrouted() int {
	for s := range m.services() {
		if !m.routed(s) {
			return s
		}
	}
	return -1
}
