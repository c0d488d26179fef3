package mesh

// EditKind says what an Edit does.
type EditKind int

const (
	// Endpoint gives the Service one more endpoint, whose address says the number. One that an earlier edit gave it
	// goes.
	Endpoint EditKind = iota
	// Route edits the VirtualService of the first service: it has one more route, whose path says the number.
	Route
	// AddRoute makes a VirtualService for a service that has none; its path says the number.
	AddRoute
	// RemoveRoute deletes what AddRoute made. It says nothing: it has arrived where the path that AddRoute left is
	// gone.
	RemoveRoute
	// Replace puts a new pod in the place of one of the Service's, as each step of a rolling restart does: another
	// name, another pod template hash, and an address that says the number.
	Replace
	// Scale lets the Service have Pods pods. The address of the first new one says the number; fewer pods say nothing.
	Scale
)

func (k EditKind) String() string {
	return [...]string{"endpoint", "route", "add-route", "remove-route", "replace", "scale"}[k]
}

// Edit is a change of a mesh.
type Edit struct {
	Kind EditKind
	// Service is whose endpoints or pods change, < Lanes.
	Service int
	// Number is what the edited objects say, so that whoever receives it knows which edit it is: 1 to LastMark.
	Number int
	// Pod is the place of the pod that Replace replaces, < Replicas of the service; Pods is how many Scale leaves.
	Pod, Pods int
}

// Write is an object as it is to be, or one that goes.
type Write struct {
	Object Object
	Delete bool
}

// Change is what an Edit does to the objects of a mesh, in order.
type Change struct {
	Writes []Write
	// Mark is which of the Writes says the number: when that is made, the change is.
	Mark int
}

func (c *Change) put(o Object)    { c.Writes = append(c.Writes, Write{Object: o}) }
func (c *Change) remove(o Object) { c.Writes = append(c.Writes, Write{Object: o, Delete: true}) }

// marked says that the last write is the one that says the number.
func (c *Change) marked() { c.Mark = len(c.Writes) - 1 }

// maxLanes is how many services are edited while a test runs, at most.
const maxLanes = 50

// Lanes returns how many services can be edited: the first ones.
func (m *Mesh) Lanes() int { return min(maxLanes, m.services()) }

// Replicas returns how many pods a lane has before any edit.
func (m *Mesh) Replicas(service int) int { return m.replicas(service) }

// Unrouted returns the service whose VirtualService AddRoute makes; -1 if there is none.
func (m *Mesh) Unrouted() int { return m.unrouted() }

// ServiceOf returns the service that workload i is of.
func (m *Mesh) ServiceOf(i int) int {
	s, _ := m.servicePod(i)
	return s
}

// unrouted returns the first service without a VirtualService; -1 if every one has.
func (m *Mesh) unrouted() int {
	for s := range m.services() {
		if !m.routed(s) {
			return s
		}
	}
	return -1
}
