package ingest

import (
	"cmp"
	"maps"
	"slices"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// serviceSource is an object in force that defines hosts: a Service or a ServiceEntry.
type serviceSource struct {
	key   value.ObjectKey
	hosts []value.ServiceKey
	// Exactly one of the two is set.
	service *corev1.Service
	entry   *clientnet.ServiceEntry
	// selector selects members; nil selects none.
	selector value.Labels
	// members are the selected workloads: WorkloadEntries, and for a ServiceEntry also ready Pods.
	members set[value.ObjectKey]
}

func (d *serviceSource) member(key value.ObjectKey, in bool) {
	if in {
		d.members.add(key)
	} else {
		delete(d.members, key)
	}
}

// created returns when the object was created, in seconds since the epoch.
func (d *serviceSource) created() int64 {
	if d.service != nil {
		return seconds(d.service.ObjectMeta)
	}
	return seconds(d.entry.ObjectMeta)
}

// before reports whether d decides before o about a host that both define: Kubernetes Services come first, then objects
// of pilotd's own cluster, then the oldest, then the order of names and clusters.
func (d *serviceSource) before(o *serviceSource) int {
	return cmp.Or(compareBool(d.service != nil, o.service != nil),
		compareBool(d.key.Cluster == "", o.key.Cluster == ""), cmp.Compare(d.created(), o.created()),
		cmp.Compare(d.key.Name, o.key.Name), cmp.Compare(d.key.Cluster, o.key.Cluster))
}

func (j *joiner) putServiceSource(key value.ObjectKey, object any) {
	if prev := j.serviceSources[key]; prev != nil {
		j.indexServiceSource(prev, false)
		delete(j.serviceSources, key)
	}
	d := &serviceSource{key: key, members: set[value.ObjectKey]{}}
	switch o := object.(type) {
	case *corev1.Service:
		d.service = o
		d.hosts = []value.ServiceKey{j.hostOf(nameOf(key))}
		if len(o.Spec.Selector) > 0 {
			d.selector = o.Spec.Selector
		}
		for name := range j.slicesByService[nameOf(key)] {
			j.slices[name].valid = false // the endpoints' health depends on the Service's labels
		}
	case *clientnet.ServiceEntry:
		d.entry = o
		for _, h := range o.Spec.GetHosts() {
			d.hosts = append(d.hosts, value.ServiceKey{Host: hostName(h), Namespace: o.Namespace})
		}
		if l := o.Spec.GetWorkloadSelector().GetLabels(); len(l) > 0 { // a selector without labels selects nothing
			d.selector = l
		}
	default:
		return
	}
	j.serviceSources[key] = d
	j.indexServiceSource(d, true)
}

func (j *joiner) indexServiceSource(d *serviceSource, in bool) {
	for _, host := range d.hosts {
		change(j.hosts, host, d.key, in)
		j.marks.hosts.add(host)
	}
	if d.selector == nil {
		return
	}
	index := j.ofEntries
	if d.service != nil {
		index = j.ofServices
	}
	if !in {
		index.remove(d.key, d.selector)
		return
	}
	index.add(d.key, d.selector)
	j.findMembers(d)
}

// findMembers tests every workload of the namespace, so it is called only after a change of the selector.
func (j *joiner) findMembers(d *serviceSource) {
	for name := range j.entriesIn[nameOf(d.key).space] {
		if e := j.entries[name]; e.healthy && e.workload.Labels.Contains(d.selector) {
			d.members.add(name.key(value.KindWorkloadEntry))
		}
	}
	if d.entry == nil {
		return
	}
	for name := range j.podsIn[nameOf(d.key).space] {
		if p := j.pods[name]; p.ready && p.workload.Labels.Contains(d.selector) {
			d.members.add(name.key(value.KindPod))
		}
	}
}

// markServiceSource marks the endpoints of all hosts that the object defines.
func (j *joiner) markServiceSource(key value.ObjectKey) {
	for _, host := range j.serviceSources[key].hosts {
		j.marks.sets.add(host)
	}
}

// sourcesOf returns the objects that define a host, the deciding one first.
func (j *joiner) sourcesOf(host value.ServiceKey) []*serviceSource {
	var out []*serviceSource
	for _, key := range j.hosts[host] {
		out = append(out, j.serviceSources[key])
	}
	slices.SortFunc(out, (*serviceSource).before)
	return out
}

// service returns the service of a host: that of the first serviceSource, plus ports and addresses that only later ones
// of the same kind of service have.
func (j *joiner) service(host value.ServiceKey) *value.Service {
	var out *value.Service
	for _, d := range j.sourcesOf(host) {
		next := d.define(j, host)
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

// joins reports whether two services of one host and namespace are of the same kind, so that they may share ports.
func joins(a, b *value.Service) bool {
	return a.Registry == b.Registry && a.Resolution == b.Resolution && a.Export.Equal(b.Export) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Selector, b.Selector)
}

func (d *serviceSource) define(j *joiner, host value.ServiceKey) *value.Service {
	if d.service != nil {
		return j.kubernetesService(d, host)
	}
	return j.externalService(d, host)
}

// endpoints returns the endpoints that d gives to a host.
func (d *serviceSource) endpoints(j *joiner, host value.ServiceKey) []*value.Endpoint {
	if d.service != nil {
		return j.kubernetesEndpoints(d)
	}
	return j.externalEndpoints(d, host)
}
