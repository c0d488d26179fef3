package ingest

import (
	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func podKind() Kind {
	k := builtin[corev1.Pod, corev1.PodList](Kind{Name: value.KindPod, Plural: "pods", InNamespaces: true,
		Lenient: true, Registry: true,
		Selector: "status.phase!=Failed,status.phase!=Succeeded"}) // ended pods have given up their address
	k.strip, k.same = stripped((*Stripper).pod), sameStripped((*Pod).equal)
	k.check = checked(checkPod)
	k.put = func(j *joiner, key value.ObjectKey, object any) { j.putPod(nameOf(key), object) }
	return k
}

// pod is a Pod in force and the values derived from it. Immutable.
type pod struct {
	*Pod
	origin
	workload *value.Workload
}

func (p *pod) equal(o *pod) bool {
	return p.Pod.equal(o.Pod) && p.origin.equal(&o.origin) && p.workload.Equal(o.workload)
}

// compareBool orders true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// seconds returns the creation time in seconds since the epoch, 0 if it is unknown.
func seconds(m metav1.ObjectMeta) int64 {
	if m.CreationTimestamp.IsZero() {
		return 0
	}
	return m.CreationTimestamp.Unix()
}

func (j *joiner) putPod(name objectName, object any) {
	if p, ok := object.(*Pod); ok {
		j.derivePod(name, p)
		return
	}
	if prev := j.pods[name]; prev != nil {
		j.indexPod(name, prev, false)
		delete(j.pods, name)
		j.podChanged(name, prev)
	}
}

// derivePod updates the pod of that name, and what depends on it, to object.
func (j *joiner) derivePod(name objectName, object *Pod) {
	next, prev := j.podOf(name.space.cluster(), object), j.pods[name]
	if prev != nil {
		if prev.equal(next) {
			return
		}
		j.indexPod(name, prev, false)
	}
	j.pods[name] = next
	j.indexPod(name, next, true)
	if prev != nil {
		j.podChanged(name, prev)
	}
	j.podChanged(name, next)
}

func (j *joiner) indexPod(name objectName, p *pod, in bool) {
	change(j.podsIn, name.space, name, in)
	change(j.podsByNode, spaceOf(name.space.cluster(), p.Pod.node), name, in)
	for _, a := range p.addresses {
		change(j.podsByAddress, a, name, in)
	}
	if !p.ready {
		return
	}
	key := name.key(value.KindPod)
	for owner := range j.ofEntries.matching(name.space, p.workload.Labels) {
		j.serviceSources[owner].member(key, in)
		j.markServiceSource(owner)
	}
}

// podChanged marks everything that refers to the pod p, which is its old or its new state.
func (j *joiner) podChanged(name objectName, p *pod) {
	for _, s := range j.slicesByPod[name] {
		j.sliceStale(s)
	}
	for _, a := range p.addresses {
		j.marks.addresses.add(a)
		for _, s := range j.slicesByAddress[objectName{name.space, a}] {
			j.sliceStale(s)
		}
	}
}

// podOf derives the pod of a cluster from its object.
func (j *joiner) podOf(cluster string, p *Pod) *pod {
	locality := j.nodes[spaceOf(cluster, p.node)]
	if l := p.labels[localityLabel]; l != "" {
		locality = labelLocality(l)
	}
	tls := tlsDisabled
	if mode, ok := p.labels[label.SecurityTlsMode.Name]; ok {
		tls = mode
	}
	network := j.network(cluster, p.labels[label.TopologyNetwork.Name])
	out := &pod{
		Pod: p,
		origin: j.origin(person{
			Identity: value.Identity{
				Cluster: cluster, Namespace: p.namespace, Workload: p.workload, ServiceAccount: j.account(p.namespace, p.account),
				Network: network, TLSMode: tls,
			},
			labels: p.labels, locality: locality, node: p.node,
		}),
	}
	out.pod, out.origin.hostName, out.origin.subDomain = p.namespace+"/"+p.name, p.hostName, p.subDomain
	out.workload = &value.Workload{
		Namespace: p.namespace, Name: p.name, Addresses: p.addresses, Labels: p.labels, Locality: locality,
		Node:           p.node,
		ServiceAccount: p.account, Network: network, NamedPorts: p.ports, Pod: true,
	}
	return out
}
