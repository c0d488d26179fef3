package value

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// KindPeerAuthentication is Istio's PeerAuthentication.
const KindPeerAuthentication Kind = "PeerAuthentication.security.istio.io"

// PeerAuthentication is a PeerAuthentication object: what workloads ask of their clients.
type PeerAuthentication struct {
	Meta
	// Labels are those of the workloads that it is for; empty for all of its namespace.
	Labels Labels
	// Mode is nil where it is that of the next wider policy.
	Mode *MTLSMode
	// Ports have modes of their own; nil stands for that of the workload.
	Ports map[uint32]*MTLSMode
}

// Kind returns KindPeerAuthentication.
func (p *PeerAuthentication) Kind() Kind { return KindPeerAuthentication }

// Object returns the key of the PeerAuthentication object.
func (p *PeerAuthentication) Object() ObjectKey { return p.Meta.Object(p.Kind()) }

// Selector returns the labels of the workloads that it is for.
func (p *PeerAuthentication) Selector() Labels { return p.Labels }

// Equal reports whether two PeerAuthentication objects are the same.
func (p *PeerAuthentication) Equal(o *PeerAuthentication) bool {
	return p == o || p.Meta == o.Meta && maps.Equal(p.Labels, o.Labels) && same(p.Mode, o.Mode) &&
		maps.EqualFunc(p.Ports, o.Ports, same)
}

// PeerPolicies are the PeerAuthentications in force in a namespace. Immutable.
type PeerPolicies struct {
	// Mode is that of the workloads for which no policy with labels is.
	Mode MTLSMode
	// from is the policy that says so; zero if none does.
	from ObjectKey
	// selecting are those with labels, the oldest first; byLabel are their positions by one of their labels.
	selecting []*PeerAuthentication
	byLabel   map[string][]int
	plain     bool
}

// NewPeerPolicies joins the policies of a namespace, the oldest first, under those of the mesh; nil stands for a mesh
// without any. Of those without labels the oldest counts.
func NewPeerPolicies(mesh *PeerPolicies, policies []*PeerAuthentication) *PeerPolicies {
	out := &PeerPolicies{byLabel: map[string][]int{}}
	if mesh != nil {
		out.Mode, out.from = mesh.Mode, mesh.from
	}
	whole := slices.IndexFunc(policies, func(p *PeerAuthentication) bool { return len(p.Labels) == 0 })
	if whole >= 0 && policies[whole].Mode != nil {
		out.Mode, out.from = *policies[whole].Mode, policies[whole].Object()
	}
	out.plain = out.Mode == Disabled
	for _, p := range policies {
		if len(p.Labels) == 0 {
			continue
		}
		least := slices.Min(slices.Collect(maps.Keys(p.Labels)))
		pair := least + "=" + p.Labels[least]
		out.byLabel[pair] = append(out.byLabel[pair], len(out.selecting))
		out.selecting = append(out.selecting, p)
		out.plain = out.plain || p.Mode != nil && *p.Mode == Disabled
		for _, m := range p.Ports {
			out.plain = out.plain || m != nil && *m == Disabled
		}
	}
	return out
}

// Plain reports whether some port may take plain text alone.
func (p *PeerPolicies) Plain() bool { return p != nil && p.plain }

// Equal reports whether two namespaces have the same policies.
func (p *PeerPolicies) Equal(o *PeerPolicies) bool {
	return p == o || p != nil && o != nil && p.Mode == o.Mode && p.from == o.from &&
		slices.Equal(p.selecting, o.selecting)
}

// Of returns the modes of a workload with such labels: those of the oldest policy that selects it, and of the namespace
// where that says nothing.
func (p *PeerPolicies) Of(labels Labels) PeerModes {
	if p == nil {
		return PeerModes{}
	}
	out, policy := PeerModes{Mode: p.Mode, From: p.from}, p.selects(labels)
	if policy == nil {
		return out
	}
	out.From = policy.Object()
	if policy.Mode != nil {
		out.Mode = *policy.Mode
	}
	var ports strings.Builder
	for _, port := range slices.Sorted(maps.Keys(policy.Ports)) {
		mode := out.Mode
		if m := policy.Ports[port]; m != nil {
			mode = *m
		}
		ports.WriteString(strconv.Itoa(int(port)) + "=" + strconv.Itoa(int(mode)) + " ")
	}
	out.Ports = ports.String()
	return out
}

// selects returns the oldest policy whose labels a workload has; nil if there is none.
func (p *PeerPolicies) selects(labels Labels) *PeerAuthentication {
	first := len(p.selecting)
	for k, v := range labels {
		for _, i := range p.byLabel[k+"="+v] {
			if i < first && labels.Contains(p.selecting[i].Labels) {
				first = i
			}
		}
	}
	if first == len(p.selecting) {
		return nil
	}
	return p.selecting[first]
}

// PeerModes are what a workload asks of its clients. Comparable.
type PeerModes struct {
	// Mode is that of all ports but Ports.
	Mode MTLSMode
	// Ports are "port=mode", each with a space behind it, in order.
	Ports string
	// From is the policy that says so; zero if none does.
	From ObjectKey
}

// Each calls f with the ports that have modes of their own, in order.
func (m PeerModes) Each(f func(port int, mode MTLSMode)) {
	for pair := range strings.FieldsSeq(m.Ports) {
		port, mode, _ := strings.Cut(pair, "=")
		number, _ := strconv.Atoi(port)
		n, _ := strconv.Atoi(mode)
		f(number, MTLSMode(n))
	}
}

// At returns the mode of a port.
func (m PeerModes) At(port int) MTLSMode {
	out := m.Mode
	m.Each(func(p int, mode MTLSMode) {
		if p == port {
			out = mode
		}
	})
	return out
}

// Stricter returns the modes without plain text wherever mutual TLS is taken too.
func (m PeerModes) Stricter() PeerModes {
	if m.Mode == Permissive {
		m.Mode = Strict
	}
	permissive, strict := "="+strconv.Itoa(int(Permissive))+" ", "="+strconv.Itoa(int(Strict))+" "
	m.Ports = strings.ReplaceAll(m.Ports, permissive, strict)
	return m
}
