package ingest

import (
	"strings"

	"istio.io/api/annotation"
	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func namespaceKind() Kind {
	k := builtin[corev1.Namespace, corev1.NamespaceList](Kind{Name: value.KindNamespace, Plural: "namespaces",
		Loss: "what depends on the labels of namespaces has no effect", Registry: true})
	k.Keep = func(o Object) {
		if n, ok := o.(*corev1.Namespace); ok {
			keepMeta(&n.ObjectMeta)
			n.Spec, n.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
		}
	}
	k.check = checked[corev1.Namespace](nil)
	k.put = func(j *joiner, key value.ObjectKey, object any) {
		j.putNamespace(spaceOf(key.Cluster, key.Name), object)
	}
	k.value = func(j *joiner, key value.ObjectKey) value.Value {
		if ns := j.namespaces[spaceOf(key.Cluster, key.Name)]; ns != nil {
			return ns
		}
		return nil
	}
	k.equal = equalValues[value.Namespace]
	return k
}

func (j *joiner) putNamespace(name space, object any) {
	var next *value.Namespace
	if ns, ok := object.(*corev1.Namespace); ok {
		next = &value.Namespace{
			Cluster: name.cluster(), Name: name.name(), Labels: ns.Labels,
			TrafficDistribution: distribution(ns.Annotations[annotation.NetworkingTrafficDistribution.Name]),
		}
	}
	prev := j.namespaces[name]
	if next == nil {
		delete(j.namespaces, name)
	} else {
		j.namespaces[name] = next
	}
	j.marks.objects.add(value.ObjectKey{Cluster: name.cluster(), Kind: value.KindNamespace, Name: name.name()})
	if distributionOf(prev) != distributionOf(next) {
		for host := range j.hosts {
			if host.Namespace == name.name() {
				j.marks.hosts.add(host)
			}
		}
	}
	if name.name() == j.config.GetRootNamespace() && networkOf(prev) != networkOf(next) {
		j.refresh()
	}
}

func distributionOf(ns *value.Namespace) string {
	if ns == nil {
		return ""
	}
	return ns.TrafficDistribution
}

// networkOf returns the network that the namespace's label names.
func networkOf(ns *value.Namespace) string {
	if ns == nil {
		return ""
	}
	return ns.Labels[label.TopologyNetwork.Name]
}

// network returns the network of an endpoint of a cluster: own, what the endpoint's labels name, or else the network of
// the cluster's root namespace.
func (j *joiner) network(cluster, own string) string {
	if own != "" {
		return own
	}
	return networkOf(j.namespaces[spaceOf(cluster, j.config.GetRootNamespace())])
}

// distribution parses a traffic distribution, as fields and annotations write it; "" if it is unknown.
func distribution(s string) string {
	switch strings.ToLower(s) {
	case "preferclose", "prefersamezone":
		return corev1.ServiceTrafficDistributionPreferSameZone
	case "prefersamenode":
		return corev1.ServiceTrafficDistributionPreferSameNode
	}
	return ""
}
