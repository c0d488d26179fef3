package ingest

import (
	"github.com/pilotd/pilotd/snapshot/value"
)

// objectName is a namespace and a name.
type objectName struct{ namespace, name string }

// String is "namespace/name".
func (n objectName) String() string { return n.namespace + "/" + n.name }

func nameOf(k value.ObjectKey) objectName { return objectName{k.Namespace, k.Name} }

// world is the objects in force, joined. It decides purely: put takes an object and marks what depends on it, flush
// computes what is marked anew from the objects and returns what differs from before. Everything that flush computes is
// a function of the objects alone; the marks only say what may have changed.
type world struct {
	domain, cluster string
	kinds           KindTable

	mesh       *value.Mesh
	namespaces map[string]*value.Namespace
	nodes      map[string]value.Locality
	rules      map[value.ObjectKey]any // VirtualService, DestinationRule, Gateway, Sidecar as given
	// of the VirtualServices among them that have regular expressions: see largestRegex
	regexSizes map[value.ObjectKey]int
	roots      groups[value.ObjectKey, value.ObjectKey] // VirtualServices by the delegates that their routes name

	pods          map[objectName]*pod
	podsByNode    groups[string, objectName]
	podsByAddress lists[string, objectName]
	podsIn        groups[string, objectName] // by namespace

	entries          map[objectName]*workloadEntry
	entriesByAddress lists[string, objectName]
	entriesIn        groups[string, objectName] // by namespace

	slices          map[objectName]*slice
	slicesByService groups[objectName, objectName]
	slicesByPod     lists[objectName, objectName]
	slicesByAddress lists[objectName, objectName] // namespace and address of endpoints that name no pod
	joints          map[objectName]*joint         // by Service

	definers map[value.ObjectKey]*definer
	hosts    lists[value.ServiceKey, value.ObjectKey]
	// ofServices are the selectors of Kubernetes Services, ofEntries those of ServiceEntries.
	ofServices, ofEntries selectors

	marks     marks
	published published
	faults    faults
	// unresolved is what objects name that cannot be used.
	unresolved unresolved
}

func newWorld(domain, cluster string) *world {
	w := &world{
		domain: domain, cluster: cluster, kinds: NewKindTable(),
		namespaces: map[string]*value.Namespace{}, nodes: map[string]value.Locality{}, rules: map[value.ObjectKey]any{},
		regexSizes: map[value.ObjectKey]int{}, roots: groups[value.ObjectKey, value.ObjectKey]{},
		pods: map[objectName]*pod{}, podsByNode: groups[string, objectName]{},
		podsByAddress: lists[string, objectName]{}, podsIn: groups[string, objectName]{},
		entries: map[objectName]*workloadEntry{}, entriesByAddress: lists[string, objectName]{},
		entriesIn: groups[string, objectName]{},
		slices:    map[objectName]*slice{}, slicesByService: groups[objectName, objectName]{},
		slicesByPod: lists[objectName, objectName]{}, slicesByAddress: lists[objectName, objectName]{},
		joints:   map[objectName]*joint{},
		definers: map[value.ObjectKey]*definer{}, hosts: lists[value.ServiceKey, value.ObjectKey]{},
		ofServices: selectors{}, ofEntries: selectors{},
		marks: newMarks(), published: newPublished(), unresolved: newUnresolved(),
	}
	w.mesh = w.meshOf("")
	w.marks.mesh = true
	return w
}

// put brings the object of key into force; nil takes it away. The object has been admitted.
func (w *world) put(key value.ObjectKey, object any) { w.kinds[key.Kind].put(w, key, object) }

// refresh marks and derives everything anew, after a change of what all of it depends on.
func (w *world) refresh() {
	for name, p := range w.pods {
		w.derivePod(name, p.Pod)
	}
	for name, e := range w.entries {
		w.deriveEntry(name, e.object)
	}
	for _, s := range w.slices {
		s.valid = false
	}
	for host := range w.hosts {
		w.marks.hosts.add(host)
	}
	for key := range w.rules {
		w.marks.objects.add(key)
	}
}
