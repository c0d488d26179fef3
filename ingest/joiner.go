package ingest

import (
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// objectName identifies an object among those of its kind. Objects refer only to objects of their own cluster.
type objectName struct {
	space space
	name  string
}

// String returns "namespace/name", with the cluster in front if it is not pilotd's own.
func (n objectName) String() string {
	if cluster := n.space.cluster(); cluster != "" {
		return cluster + "/" + n.space.name() + "/" + n.name
	}
	return n.space.name() + "/" + n.name
}

func nameOf(k value.ObjectKey) objectName { return objectName{spaceOf(k.Cluster, k.Namespace), k.Name} }

// key returns the key of the object of kind with this name.
func (n objectName) key(kind value.Kind) value.ObjectKey {
	return value.ObjectKey{Cluster: n.space.cluster(), Kind: kind, Namespace: n.space.name(), Name: n.name}
}

// space names a namespace, or a node, of one cluster: for pilotd's own cluster the plain name, for others the cluster's
// id, a zero byte and the name. It is one string because there are millions of them, most from pilotd's own cluster.
type space string

func spaceOf(cluster, name string) space {
	if cluster == "" {
		return space(name)
	}
	return space(cluster + "\x00" + name)
}

// cluster returns the id of the cluster, empty for pilotd's own. name returns the namespace or node.
func (s space) cluster() string {
	if cluster, _, ok := strings.Cut(string(s), "\x00"); ok {
		return cluster
	}
	return ""
}

func (s space) name() string { return string(s[strings.LastIndexByte(string(s), 0)+1:]) }

// localName is the name of an object in the cluster of the object that refers to it.
type localName struct{ namespace, name string }

// joiner holds the objects in force and joins them. It only decides, and does no I/O: put takes an object and marks
// what may depend on it; flush computes what is marked anew from the objects and returns what differs from before. All
// that flush computes is a function of the objects alone; marks only say what may have changed.
type joiner struct {
	domain, cluster string
	kinds           KindTable

	config     *meshconfig.MeshConfig
	mesh       *value.Mesh // parsed from config
	namespaces map[space]*value.Namespace
	nodes      map[space]value.Locality
	// VirtualServices, DestinationRules, Gateways, Sidecars, … as the source sent them
	rules map[value.ObjectKey]any
	// regexSizes has the VirtualServices that contain regular expressions; see largestRegex.
	regexSizes map[value.ObjectKey]int
	roots      groups[value.ObjectKey, value.ObjectKey] // root VirtualServices, by the delegates that their routes name

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
	slicesByAddress lists[objectName, objectName] // by the namespace and address of endpoints that name no pod
	joints          map[objectName]*joint         // by Service

	serviceSources map[value.ObjectKey]*serviceSource
	hosts          lists[value.ServiceKey, value.ObjectKey]
	// ofServices holds the selectors of Kubernetes Services, ofEntries those of ServiceEntries.
	ofServices, ofEntries selectors

	marks     marks
	published published
	faults    faults
	// unresolved records references in objects that cannot be resolved.
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

// put brings an admitted object into force; nil removes it.
func (j *joiner) put(key value.ObjectKey, object any) { j.kinds[key.Kind].put(j, key, object) }

// refresh recomputes everything, after a change of something that all of it depends on, such as the mesh configuration.
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
