package ingest

import (
	"cmp"
	"maps"
	"slices"
	"unique"

	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// origin holds what an endpoint takes from the workload behind it. Immutable.
type origin struct {
	identity            unique.Handle[value.Identity]
	labels              value.Labels
	locality            value.Locality
	node, pod           string
	hostName, subDomain string
	draining            bool
}

func (o *origin) equal(p *origin) bool {
	return o.identity == p.identity && maps.Equal(o.labels, p.labels) && o.locality == p.locality && o.node == p.node &&
		o.pod == p.pod &&
		o.hostName == p.hostName && o.subDomain == p.subDomain && o.draining == p.draining
}

// endpoint returns an endpoint with this origin. The caller sets address, ports and health.
func (o *origin) endpoint() *value.Endpoint {
	return &value.Endpoint{
		Identity: o.identity, Labels: o.labels, Locality: o.locality, Weight: 1,
		Node: o.node, Pod: o.pod, HostName: o.hostName, SubDomain: o.subDomain,
	}
}

// health returns h, unless the workload's labels ask for no new sessions (draining).
func (o *origin) health(h value.Health) value.Health {
	if o.draining {
		return value.Draining
	}
	return h
}

// Labels that tell how to treat a workload.
const (
	drainingLabel = "istio.io/draining"
	tlsDisabled   = "disabled"
	tlsIstio      = "istio"
)

// person is the input for the identity and labels of a workload.
type person struct {
	value.Identity
	labels   value.Labels
	locality value.Locality
	node     string
}

// origin makes the origin of a workload. It puts the id of the cluster in place of the empty one, and adds the labels
// that istiod adds.
func (j *joiner) origin(p person) origin {
	cluster := cmp.Or(p.Cluster, j.cluster)
	all := value.Labels{}
	maps.Copy(all, p.labels)
	for k, v := range map[string]string{
		corev1.LabelTopologyRegion: p.locality.Region, corev1.LabelTopologyZone: p.locality.Zone,
		label.TopologySubzone.Name: p.locality.SubZone,
		label.TopologyCluster.Name: cluster, corev1.LabelHostname: p.node, label.TopologyNetwork.Name: p.Network,
	} {
		if v != "" {
			all[k] = v
		}
	}
	p.Cluster, p.LabelsKey = cluster, value.LabelsKey(all)
	return origin{
		identity: unique.Make(p.Identity), labels: all, locality: p.locality, node: p.node,
		draining: p.labels[drainingLabel] != "",
	}
}

// account returns the SPIFFE identity of a service account, without "spiffe://".
func (j *joiner) account(namespace, name string) string {
	return j.config.GetTrustDomain() + "/ns/" + namespace + "/sa/" + name
}

// workloadAt returns the workload that has an address. If several pods have it, the first in this order counts:
// pilotd's own cluster, alive, not on the host network, ready, youngest, by name. A WorkloadEntry counts only if no pod
// has the address.
func (j *joiner) workloadAt(address string) *value.Workload {
	if names := j.podsByAddress[address]; len(names) > 0 {
		return j.pods[slices.MinFunc(names, j.comparePods)].workload
	}
	if names := j.entriesByAddress[address]; len(names) > 0 {
		return j.entries[slices.MinFunc(names, j.compareEntries)].workload
	}
	return nil
}

// compareClusters orders pilotd's own cluster first.
func compareClusters(a, b objectName) int {
	return cmp.Or(compareBool(a.space.cluster() == "", b.space.cluster() == ""), cmp.Compare(a.space, b.space))
}

// comparePods orders pods that share an address: the first is the one that owns it.
func (j *joiner) comparePods(a, b objectName) int {
	return cmp.Or(compareClusters(a, b), j.pods[a].compare(j.pods[b].Pod))
}

func (j *joiner) compareEntries(a, b objectName) int {
	return cmp.Or(compareClusters(a, b), j.entries[a].compare(j.entries[b]))
}
