package ingest

import (
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// objectName is the part of a key that tells the objects of one kind apart. What objects name of each other is in their
// own cluster.
type objectName struct {
	space space
	name  string
}

// String returns "namespace/name", with the cluster in front where it is another one.
func (n objectName) String() string {
	if cluster := n.space.cluster(); cluster != "" {
		return cluster + "/" + n.space.name() + "/" + n.name
	}
	return n.space.name() + "/" + n.name
}

func nameOf(k value.ObjectKey) objectName { return objectName{spaceOf(k.Cluster, k.Namespace), k.Name} }

// key returns the key of the object of that kind.
func (n objectName) key(kind value.Kind) value.ObjectKey {
	return value.ObjectKey{Cluster: n.space.cluster(), Kind: kind, Namespace: n.space.name(), Name: n.name}
}

// space is a namespace, or a node, of one cluster: in pilotd's own cluster its name alone, else the cluster's id, a
// zero byte and the name. There are millions of these, and most are of its own cluster.
type space string

func spaceOf(cluster, name string) space {
	if cluster == "" {
		return space(name)
	}
	return space(cluster + "\x00" + name)
}

// cluster returns the id of the cluster, empty for pilotd's own; name is the namespace or node.
func (s space) cluster() string {
	if cluster, _, ok := strings.Cut(string(s), "\x00"); ok {
		return cluster
	}
	return ""
}

func (s space) name() string { return string(s[strings.LastIndexByte(string(s), 0)+1:]) }

// localName is what an object names in its own cluster.
type localName struct{ namespace, name string }

// joiner has the objects in force, joined. It decides purely: put takes an object and marks what depends on it, flush
// computes what is marked anew from the objects and returns what differs from before. Everything that flush computes is
// a function of the objects alone; the marks only say what may have changed.
type joiner struct {
	domain, cluster string
	kinds           KindTable

	config     *meshconfig.MeshConfig
	mesh       *value.Mesh // of config
	namespaces map[space]*value.Namespace
	nodes      map[space]value.Locality
	rules      map[value.ObjectKey]any // VirtualService, DestinationRule, Gateway, Sidecar as given
	// of the VirtualServices among them that have regular expressions: see largestRegex
	regexSizes map[value.ObjectKey]int
	roots      groups[value.ObjectKey, value.ObjectKey] // VirtualServices by the delegates that their routes name

	pods          map[objectName]*pod
	podsByNode    groups[space, objectName]
	podsByAddress lists[string, objectName]
	podsIn        groups[space, objectName] // by namespace

	entries          map[objectName]*workloadEntry
	entriesByAddress lists[string, objectName]
	entriesIn        groups[space, objectName] // by namespace

	slices          map[objectName]*slice
	slicesByService groups[objectName, objectName]
	slicesByPod     lists[objectName, objectName]
	slicesByAddress lists[objectName, objectName] // namespace and address of endpoints that name no pod
	joints          map[objectName]*joint         // by Service

	serviceSources map[value.ObjectKey]*serviceSource
	hosts          lists[value.ServiceKey, value.ObjectKey]
	// ofServices are the selectors of Kubernetes Services, ofEntries those of ServiceEntries.
	ofServices, ofEntries selectors

	marks     marks
	published published
	faults    faults
	// unresolved is what objects name that cannot be used.
	unresolved unresolved
	keys       issuerKeys
}

func newJoiner(domain, cluster string) *joiner {
	j := &joiner{
		domain: domain, cluster: cluster, kinds: NewKindTable(),
		namespaces: map[space]*value.Namespace{}, nodes: map[space]value.Locality{}, rules: map[value.ObjectKey]any{},
		regexSizes: map[value.ObjectKey]int{}, roots: groups[value.ObjectKey, value.ObjectKey]{},
		pods: map[objectName]*pod{}, podsByNode: groups[space, objectName]{},
		podsByAddress: lists[string, objectName]{}, podsIn: groups[space, objectName]{},
		entries: map[objectName]*workloadEntry{}, entriesByAddress: lists[string, objectName]{},
		entriesIn: groups[space, objectName]{},
		slices:    map[objectName]*slice{}, slicesByService: groups[objectName, objectName]{},
		slicesByPod: lists[objectName, objectName]{}, slicesByAddress: lists[objectName, objectName]{},
		joints:         map[objectName]*joint{},
		serviceSources: map[value.ObjectKey]*serviceSource{}, hosts: lists[value.ServiceKey, value.ObjectKey]{},
		ofServices: selectors{}, ofEntries: selectors{},
		marks: newMarks(), published: newPublished(), unresolved: newUnresolved(),
		keys: newIssuerKeys(),
	}
	j.setMesh(DefaultMesh())
	return j
}

// put brings the object of key into force; nil takes it away. The object has been admitted.
func (j *joiner) put(key value.ObjectKey, object any) { j.kinds[key.Kind].put(j, key, object) }

// refresh marks and derives everything anew, after a change of what all of it depends on.
func (j *joiner) refresh() {
	for name, p := range j.pods {
		j.derivePod(name, p.Pod)
	}
	for name, e := range j.entries {
		j.deriveEntry(name, e.object)
	}
	for _, s := range j.slices {
		s.valid = false
	}
	for host := range j.hosts {
		j.marks.hosts.add(host)
	}
	for key := range j.rules {
		j.marks.objects.add(key)
	}
}
