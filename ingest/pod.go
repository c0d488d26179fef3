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
		Selector: "status.phase!=Failed,status.phase!=Succeeded"}) // Those have given up their address.
	k.strip, k.same = stripped((*Stripper).pod), sameStripped((*Pod).equal)
	k.check = checked(checkPod)
	k.put = func(w *world, key value.ObjectKey, object any) { w.putPod(nameOf(key), object) }
	return k
}

// pod is a Pod in force and what is derived from it. Immutable.
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

// seconds is the creation time since the epoch, 0 if there is none.
func seconds(m metav1.ObjectMeta) int64 {
	if m.CreationTimestamp.IsZero() {
		return 0
	}
	return m.CreationTimestamp.Unix()
}

func (w *world) putPod(name objectName, object any) {
	if p, ok := object.(*Pod); ok {
		w.derivePod(name, p)
		return
	}
	if prev := w.pods[name]; prev != nil {
		w.indexPod(name, prev, false)
		delete(w.pods, name)
		w.podChanged(name, prev)
	}
}

// derivePod brings the pod of that name to object and the world around it.
func (w *world) derivePod(name objectName, object *Pod) {
	next, prev := w.podOf(name.space.cluster(), object), w.pods[name]
	if prev != nil {
		if prev.equal(next) {
			return
		}
		w.indexPod(name, prev, false)
	}
	w.pods[name] = next
	w.indexPod(name, next, true)
	if prev != nil {
		w.podChanged(name, prev)
	}
	w.podChanged(name, next)
}

func (w *world) indexPod(name objectName, p *pod, in bool) {
	change(w.podsIn, name.space, name, in)
	change(w.podsByNode, spaceOf(name.space.cluster(), p.Pod.node), name, in)
	for _, a := range p.addresses {
		change(w.podsByAddress, a, name, in)
	}
	if !p.ready {
		return
	}
	key := name.key(value.KindPod)
	for owner := range w.ofEntries.matching(name.space, p.workload.Labels) {
		w.definers[owner].member(key, in)
		w.markDefiner(owner)
	}
}

// podChanged marks what looks at the pod p, as it is or was.
func (w *world) podChanged(name objectName, p *pod) {
	for _, s := range w.slicesByPod[name] {
		w.sliceStale(s)
	}
	for _, a := range p.addresses {
		w.marks.addresses.add(a)
		for _, s := range w.slicesByAddress[objectName{name.space, a}] {
			w.sliceStale(s)
		}
	}
}

// podOf derives what counts of a pod of a cluster.
func (w *world) podOf(cluster string, p *Pod) *pod {
	locality := w.nodes[spaceOf(cluster, p.node)]
	if l := p.labels[localityLabel]; l != "" {
		locality = labelLocality(l)
	}
	tls := tlsDisabled
	if mode, ok := p.labels[label.SecurityTlsMode.Name]; ok {
		tls = mode
	}
	network := w.network(cluster, p.labels[label.TopologyNetwork.Name])
	out := &pod{
		Pod: p,
		origin: w.origin(person{
			Identity: value.Identity{
				Cluster: cluster, Namespace: p.namespace, Workload: p.workload, ServiceAccount: w.account(p.namespace, p.account),
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
