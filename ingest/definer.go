package ingest

import (
	"cmp"
	"maps"
	"slices"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// definer is an object that defines hosts: a Service or a ServiceEntry in force.
type definer struct {
	key   value.ObjectKey
	hosts []value.ServiceKey
	// One of them is set.
	service *corev1.Service
	entry   *clientnet.ServiceEntry
	// selector selects members; nil selects none.
	selector value.Labels
	// members are the workloads selected: WorkloadEntries, and for a ServiceEntry ready Pods.
	members set[value.ObjectKey]
}

func (d *definer) member(key value.ObjectKey, in bool) {
	if in {
		d.members.add(key)
	} else {
		delete(d.members, key)
	}
}

// created is the object's age.
func (d *definer) created() int64 {
	if d.service != nil {
		return seconds(d.service.ObjectMeta)
	}
	return seconds(d.entry.ObjectMeta)
}

// before orders the definers of one host: Kubernetes first, then those of pilotd's own cluster, then the oldest, then by
// name and cluster.
func (d *definer) before(o *definer) int {
	return cmp.Or(compareBool(d.service != nil, o.service != nil),
		compareBool(d.key.Cluster == "", o.key.Cluster == ""), cmp.Compare(d.created(), o.created()),
		cmp.Compare(d.key.Name, o.key.Name), cmp.Compare(d.key.Cluster, o.key.Cluster))
}

func (w *world) putDefiner(key value.ObjectKey, object any) {
	if prev := w.definers[key]; prev != nil {
		w.indexDefiner(prev, false)
		delete(w.definers, key)
	}
	d := &definer{key: key, members: set[value.ObjectKey]{}}
	switch o := object.(type) {
	case *corev1.Service:
		d.service = o
		d.hosts = []value.ServiceKey{w.hostOf(nameOf(key))}
		if len(o.Spec.Selector) > 0 {
			d.selector = o.Spec.Selector
		}
		for name := range w.slicesByService[nameOf(key)] {
			w.slices[name].valid = false // Their health depends on the Service's labels.
		}
	case *clientnet.ServiceEntry:
		d.entry = o
		for _, h := range o.Spec.GetHosts() {
			d.hosts = append(d.hosts, value.ServiceKey{Host: hostName(h), Namespace: o.Namespace})
		}
		if l := o.Spec.GetWorkloadSelector().GetLabels(); len(l) > 0 { // one without labels selects nothing
			d.selector = l
		}
	default:
		return
	}
	w.definers[key] = d
	w.indexDefiner(d, true)
}

func (w *world) indexDefiner(d *definer, in bool) {
	for _, host := range d.hosts {
		change(w.hosts, host, d.key, in)
		w.marks.hosts.add(host)
	}
	if d.selector == nil {
		return
	}
	index := w.ofEntries
	if d.service != nil {
		index = w.ofServices
	}
	if !in {
		index.remove(d.key, d.selector)
		return
	}
	index.add(d.key, d.selector)
	w.findMembers(d)
}

// findMembers looks at every workload of the namespace: after a change of a selector only.
func (w *world) findMembers(d *definer) {
	for name := range w.entriesIn[nameOf(d.key).space] {
		if e := w.entries[name]; e.healthy && e.workload.Labels.Contains(d.selector) {
			d.members.add(name.key(value.KindWorkloadEntry))
		}
	}
	if d.entry == nil {
		return
	}
	for name := range w.podsIn[nameOf(d.key).space] {
		if p := w.pods[name]; p.ready && p.workload.Labels.Contains(d.selector) {
			d.members.add(name.key(value.KindPod))
		}
	}
}

// markDefiner marks the endpoints of all that d defines.
func (w *world) markDefiner(key value.ObjectKey) {
	for _, host := range w.definers[key].hosts {
		w.marks.sets.add(host)
	}
}

// definersOf are those of a host, the first of which decides.
func (w *world) definersOf(host value.ServiceKey) []*definer {
	var out []*definer
	for _, key := range w.hosts[host] {
		out = append(out, w.definers[key])
	}
	slices.SortFunc(out, (*definer).before)
	return out
}

// service is the service of a host: the first definer's, with the ports and addresses that only later ones have which
// are of its kind.
func (w *world) service(host value.ServiceKey) *value.Service {
	var out *value.Service
	for _, d := range w.definersOf(host) {
		next := d.define(w, host)
		if out == nil {
			out = next
			continue
		}
		if !joins(out, next) {
			continue
		}
		ports, addresses := len(out.Ports), len(out.Addresses)
		for _, p := range next.Ports {
			if out.PortByNumber(p.Number) == nil {
				out.Ports = append(out.Ports, p)
			}
		}
		for _, a := range next.Addresses {
			if !slices.Contains(out.Addresses, a) && !out.Headless {
				out.Addresses = append(out.Addresses, a)
			}
		}
		if len(out.Ports) > ports || len(out.Addresses) > addresses {
			out.Joined = append(out.Joined, next.Object)
		}
	}
	return out
}

// joins reports whether two services of a host and namespace are of one kind, so that the ports of both are those of
// one service.
func joins(a, b *value.Service) bool {
	return a.Registry == b.Registry && a.Resolution == b.Resolution && a.Export.Equal(b.Export) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Selector, b.Selector)
}

func (d *definer) define(w *world, host value.ServiceKey) *value.Service {
	if d.service != nil {
		return w.kubernetesService(d, host)
	}
	return w.externalService(d, host)
}

// endpoints are what d gives to a host.
func (d *definer) endpoints(w *world, host value.ServiceKey) []*value.Endpoint {
	if d.service != nil {
		return w.kubernetesEndpoints(d)
	}
	return w.externalEndpoints(d, host)
}
