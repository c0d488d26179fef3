package ingest

import (
	"strings"

	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func nodeKind() Kind {
	k := builtin[corev1.Node, corev1.NodeList](Kind{Name: value.KindNode, Plural: "nodes", Lenient: true,
		Loss: "the localities of pods are unknown", Registry: true})
	k.Keep = func(o Object) {
		if n, ok := o.(*corev1.Node); ok {
			keepMeta(&n.ObjectMeta)
			n.Spec, n.Status = corev1.NodeSpec{}, corev1.NodeStatus{Addresses: n.Status.Addresses}
		}
	}
	k.check = checked[corev1.Node](nil)
	k.put = func(j *joiner, key value.ObjectKey, object any) { j.putNode(spaceOf(key.Cluster, key.Name), object) }
	return k
}

func (j *joiner) putNode(name space, object any) {
	next, known := value.Locality{}, false
	if node, ok := object.(*corev1.Node); ok {
		known = true
		next = value.Locality{
			Region:  either(node.Labels, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion),
			Zone:    either(node.Labels, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone),
			SubZone: node.Labels[label.TopologySubzone.Name],
		}
	}
	prev := j.nodes[name]
	if known {
		j.nodes[name] = next
	} else {
		delete(j.nodes, name)
	}
	if prev == next {
		return
	}
	for p := range j.podsByNode[name] {
		j.derivePod(p, j.pods[p].Pod)
	}
}

// either returns the value of label first, or of label second if first is empty.
func either(labels map[string]string, first, second string) string {
	if v := labels[first]; v != "" {
		return v
	}
	return labels[second]
}

// localityLabel overrides a workload's locality: "region/zone/subzone", or with dots in place of slashes.
const localityLabel = "istio-locality"

// localityOf parses "region/zone/subzone", as WorkloadEntries write it.
func localityOf(s string) value.Locality {
	parts := strings.SplitN(s, "/", 4)
	parts = append(parts, "", "", "")
	return value.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

// labelLocality parses the value of localityLabel.
func labelLocality(s string) value.Locality {
	if !strings.Contains(s, "/") {
		s = strings.ReplaceAll(s, ".", "/")
	}
	return localityOf(s)
}
