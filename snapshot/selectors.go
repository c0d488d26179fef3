package snapshot

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// selectorIndex counts who mentions which label, so that a proxy's class holds only the labels that something can read.
type selectorIndex struct {
	mentions chunked.Map[int] // reach, label, "=value" or "" for any value
}

// everywhere is the reach of a selector that is asked for proxies of all namespaces.
const everywhere = "*"

// localityIndex counts who makes endpoints depend on where the client is.
type localityIndex struct {
	locality int // rules and services that look at the client's locality
	node     int // services that look at the client's node
}

// mention is one label that a selector reads.
type mention struct{ reach, label, value string }

func pairs(reach string, labels value.Labels) (out []mention) {
	for k, v := range labels {
		out = append(out, mention{reach, k, "=" + v})
	}
	return out
}

func count(m chunked.Map[int], add, remove []mention) chunked.Map[int] {
	counts := map[string]int{}
	for _, m := range add {
		counts[key(m.reach, m.label, m.value)]++
	}
	for _, m := range remove {
		counts[key(m.reach, m.label, m.value)]--
	}
	var edits editList[int]
	for k, d := range counts {
		n, _ := m.Get(k)
		edits.set(k, n+d, n+d == 0)
	}
	return m.Apply(edits)
}

// LabelsRead returns the part of labels that any selector or setting reads for a proxy in namespace. Selectors of
// services are not among them: which of those a proxy serves is a fact of its own.
func (s *Snapshot) LabelsRead(namespace string, labels value.Labels) value.Labels {
	out := value.Labels{}
	for _, l := range s.Mesh.Locality().Priority {
		k, _, _ := strings.Cut(l, "=")
		if v, ok := labels[k]; ok {
			out[k] = v
		}
	}
	for k, v := range labels {
		for _, reach := range []string{namespace, everywhere} {
			_, pair := s.selectors.mentions.Get(key(reach, k, "="+v))
			_, label := s.selectors.mentions.Get(key(reach, k, ""))
			if pair || label {
				out[k] = v
			}
		}
	}
	return out
}

// LocalityMatters reports whether any endpoints depend on the client's locality, and NodeMatters whether any depend on
// its node.
func (s *Snapshot) LocalityMatters() bool {
	return s.locality.locality > 0 || len(s.Mesh.Locality().Distribute) > 0 ||
		s.Mesh.Clusters.Outlier != nil
}

// NodeMatters reports whether any endpoints depend on the node that the client runs on.
func (s *Snapshot) NodeMatters() bool {
	return s.locality.node > 0 || slices.Contains(s.Mesh.Locality().Priority, nodeLabel)
}

func (x *localityIndex) count(d *Delta) {
	for _, c := range d.Services {
		x.countService(-1, c.Old)
		x.countService(1, c.New)
	}
	for _, c := range Of[*value.DestinationRule](d.Objects) {
		x.countRule(-1, c.Old)
		x.countRule(1, c.New)
	}
}

func (x *localityIndex) countService(sign int, s *value.Service) {
	switch {
	case s == nil:
	case s.NodeLocal:
		x.node += sign
	case strings.HasSuffix(s.TrafficDistribution, "Node"):
		x.node += sign
		x.locality += sign
	case s.TrafficDistribution != "":
		x.locality += sign
	}
}

func (x *localityIndex) countRule(sign int, d *value.DestinationRule) {
	if d == nil {
		return
	}
	place, node := false, false
	for p := range Policies(d) {
		place = place || p.Outlier != nil
		if lb := p.Balancer; lb != nil && lb.Locality != nil {
			place, node = true, node || slices.Contains(lb.Locality.Priority, nodeLabel)
		}
	}
	if place {
		x.locality += sign
	}
	if node {
		x.node += sign
	}
}

// nodeLabel is the label that stands for the node in a failoverPriority.
const nodeLabel = "kubernetes.io/hostname"

// Policies yields all traffic policies of a rule: its own, the subsets', and those of ports.
func Policies(d *value.DestinationRule) iter.Seq[*value.TrafficPolicy] {
	return func(yield func(*value.TrafficPolicy) bool) {
		all := []*value.PortPolicies{d.Policy}
		for _, s := range d.Subsets {
			all = append(all, s.Policy)
		}
		for _, p := range all {
			for one := range p.All {
				if !yield(one) {
					return
				}
			}
		}
	}
}

func mentionsOfRule(d *value.DestinationRule) []mention {
	out := pairs(d.Namespace, d.Selector())
	for p := range Policies(d) {
		if p.Balancer == nil || p.Balancer.Locality == nil {
			continue
		}
		for _, l := range p.Balancer.Locality.Priority {
			k, v, pair := strings.Cut(l, "=")
			if pair {
				out = append(out, mention{everywhere, k, "=" + v})
			} else {
				out = append(out, mention{everywhere, k, ""})
			}
		}
	}
	return out
}

func mentionsOfVirtual(vs *value.VirtualService) (out []mention) {
	for _, r := range vs.HTTP {
		for _, m := range r.Matches {
			out = append(out, pairs(everywhere, m.Labels)...)
		}
	}
	for _, r := range slices.Concat(vs.TCP, vs.TLS) {
		for _, m := range r.Matches {
			out = append(out, pairs(everywhere, m.Labels)...)
		}
	}
	return out
}

// with returns x after the change.
func (x selectorIndex) with(d *Delta) selectorIndex {
	var add, remove []mention
	for _, c := range d.Objects {
		add, remove = append(add, mentions(c.New)...), append(remove, mentions(c.Old)...)
	}
	return selectorIndex{count(x.mentions, add, remove)}
}

// mentions returns the labels that an object, which may be nil, reads.
func mentions(v value.Value) []mention {
	switch v := v.(type) {
	case *value.DestinationRule:
		return mentionsOfRule(v)
	case *value.VirtualService:
		return mentionsOfVirtual(v)
	case *value.Sidecar:
		return pairs(v.Namespace, v.Selector())
	case *value.Gateway:
		return pairs(everywhere, v.Selector())
	}
	return nil
}

// ReadsSame reports whether s and o read the same labels, localities and nodes of proxies: if so, no proxy's class
// differs between them for what it reads.
func (s *Snapshot) ReadsSame(o *Snapshot) bool {
	return s.selectors.mentions.Same(o.selectors.mentions) && slices.Equal(
		s.Mesh.Locality().Priority, o.Mesh.Locality().Priority) && s.LocalityMatters() == o.LocalityMatters() &&
		s.NodeMatters() == o.NodeMatters()
}
