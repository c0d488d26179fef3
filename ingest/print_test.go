package ingest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// lines is a Batch as text that a reader can review: one line for each change, sorted.
func lines(b *snapshot.Batch) []string {
	var out []string
	if b.Mesh != nil {
		out = append(out, "mesh root="+b.Mesh.RootNamespace()+" trust="+b.Mesh.Config.GetTrustDomain())
	}
	out = append(out, printed("namespace", b.Namespaces,
		func(n *value.Namespace) string { return showLabels(n.Labels) + word(" near=", n.TrafficDistribution) })...)
	out = append(out, printed("service", b.Services, showService)...)
	out = append(out, printed("", b.VirtualServices,
		func(v *value.VirtualService) string { return showVisibility(v.Export) + showSpec(v.Spec) })...)
	out = append(out, printed("", b.DestinationRules,
		func(v *value.DestinationRule) string { return showVisibility(v.Export) + showSpec(v.Spec) })...)
	out = append(out, printed("", b.Gateways, func(v *value.Gateway) string { return showSpec(v.Spec) })...)
	out = append(out, printed("", b.Sidecars, func(v *value.Sidecar) string { return showSpec(v.Spec) })...)
	out = append(out, printed("projection", b.Projections, showProjection)...)
	out = append(out, printed("workload", b.Workloads, showWorkload)...)
	for k, list := range b.Endpoints {
		text := "endpoints " + k.String() + ":"
		for _, e := range list {
			text += "\n    " + showEndpoint(e)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func printed[K comparable, V any](what string, m map[K]*V, show func(*V) string) []string {
	var out []string
	for k, v := range m {
		text := strings.TrimSpace(fmt.Sprintf("%s %v", what, k)) + ": "
		if v == nil {
			text += "gone"
		} else {
			text += strings.TrimSpace(show(v))
		}
		out = append(out, text)
	}
	return out
}

func word(name, s string) string {
	if s == "" {
		return ""
	}
	return name + s
}

func showLabels(l value.Labels) string { return "{" + value.LabelsKey(l) + "}" }

func showVisibility(v value.Visibility) string {
	if v.Public {
		return ""
	}
	return fmt.Sprintf("to=%v ", v.Namespaces)
}

func showSpec(m proto.Message) string {
	j, err := protojson.Marshal(m)
	if err != nil {
		panic(err)
	}
	var plain any
	if err := yaml.Unmarshal(j, &plain); err != nil {
		panic(err)
	}
	return strings.ReplaceAll(fmt.Sprint(plain), "map[", "[")
}

func showService(s *value.Service) string {
	var b strings.Builder
	b.WriteString(showVisibility(s.Export))
	fmt.Fprintf(&b, "%v addresses=%v", [...]string{"EDS", "DNS", "DNS_RR", "PASSTHROUGH", "ALIAS"}[s.Resolution],
		s.Addresses)
	for _, p := range s.Ports {
		fmt.Fprintf(&b, " %s:%d:%s", p.Name, p.Number, p.Protocol)
		if p.TargetPort != 0 || p.TargetName != "" {
			fmt.Fprintf(&b, "->%d%s", p.TargetPort, p.TargetName)
		}
	}
	for text, is := range map[string]bool{" external": s.External, " headless": s.Headless, " nodelocal": s.NodeLocal,
		" notready": s.PublishNotReady} {
		if is {
			b.WriteString(text)
		}
	}
	b.WriteString(word(" alias=", s.ExternalName) + word(" near=", s.TrafficDistribution) + word(" auto=",
		strings.Join(s.AutoAddresses, ",")))
	b.WriteString(word(" san=", strings.Join(s.SubjectAltNames, ",")) + word(" externalIPs=",
		strings.Join(s.ExternalIPs, ",")))
	if s.Selector != nil {
		b.WriteString(" selector=" + showLabels(s.Selector))
	}
	return b.String()
}

func showProjection(p *value.Projection) string {
	return fmt.Sprintf("any=%v accounts=%v tls=%v inline=%d", p.Any, p.ServiceAccounts, p.MutualTLS, len(p.Inline))
}

func showWorkload(w *value.Workload) string {
	kind := "entry"
	if w.Pod {
		kind = "pod"
	}
	ports := ""
	for _, n := range slices.Sorted(maps.Keys(w.NamedPorts)) {
		ports += fmt.Sprintf(" %s:%d", n, w.NamedPorts[n])
	}
	for _, n := range slices.Sorted(maps.Keys(w.Ports)) {
		ports += fmt.Sprintf(" %s:%d", n, w.Ports[n])
	}
	return fmt.Sprintf("%s %s/%s %v %s %s node=%s sa=%s%s%s", kind, w.Namespace, w.Name, w.Addresses, w.Locality,
		showLabels(w.Labels), w.Node, w.ServiceAccount,
		word(" network=", w.Network), ports)
}

func showEndpoint(e *value.Endpoint) string {
	id := e.Identity.Value()
	text := strings.Join(e.Addresses, "+")
	for _, p := range e.Ports {
		text += fmt.Sprintf(" %s:%d", p.Name, p.Port)
	}
	text += " " + [...]string{"healthy", "unhealthy", "draining", "terminating", "unknown"}[e.Health]
	text += fmt.Sprintf(" w=%d %s/%s tls=%s", e.Weight, id.Namespace, id.Workload, id.TLSMode)
	return text + word(" sa=", id.ServiceAccount) + word(" net=", id.Network) + word(" at=", e.Locality.String()) +
		word(" node=", e.Node) + word(" pod=", e.Pod) +
		word(" name=", e.HostName) + word(" sub=", e.SubDomain) + " " + showLabels(e.Labels)
}

// keeper is a Builder that keeps what it got, and what it adds up to.
type keeper struct {
	batches []*snapshot.Batch
	state   published
	mesh    *value.Mesh
}

func newKeeper() *keeper { return &keeper{state: newPublished()} }

func (k *keeper) Apply(b *snapshot.Batch) {
	k.batches = append(k.batches, b)
	if b.Mesh != nil {
		k.mesh = b.Mesh
	}
	s := &k.state
	lay(s.namespaces, b.Namespaces)
	lay(s.services, b.Services)
	lay(s.virtual, b.VirtualServices)
	lay(s.rules, b.DestinationRules)
	lay(s.gateways, b.Gateways)
	lay(s.sidecars, b.Sidecars)
	lay(s.projections, b.Projections)
	lay(s.workloads, b.Workloads)
	for host, list := range b.Endpoints {
		if s.endpoints[host] = list; len(list) == 0 {
			delete(s.endpoints, host)
		}
	}
}

func lay[K comparable, V any](state, changes map[K]*V) {
	for key, v := range changes {
		if state[key] = v; v == nil {
			delete(state, key)
		}
	}
}

// whole is all that the Builder has, as one Batch.
func (k *keeper) whole() *snapshot.Batch {
	s := k.state
	return &snapshot.Batch{
		Mesh: k.mesh, Namespaces: s.namespaces, Services: s.services, VirtualServices: s.virtual,
		DestinationRules: s.rules,
		Gateways:         s.gateways, Sidecars: s.sidecars, Projections: s.projections, Endpoints: s.endpoints,
		Workloads: s.workloads,
	}
}

func quiet(t testing.TB) Settings { return Settings{Log: testLog(t)} }
