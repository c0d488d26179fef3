package ingest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// lines returns a Delta as text that a reader can review: one line for each change, sorted.
func lines(d *snapshot.Delta) []string {
	var out []string
	if d.Mesh != nil {
		out = append(out, "mesh root="+d.Mesh.RootNamespace+" trust="+d.Mesh.Peers.TrustDomains[0])
	}
	for k, c := range d.Objects {
		what := k.String()
		if k.Kind == value.KindNamespace {
			what = "namespace " + k.Name
		}
		out = append(out, printed(what, c, showObject))
	}
	for k, c := range d.Services {
		out = append(out, printed("service "+k.String(), c, showService))
	}
	for k, c := range d.Projections {
		out = append(out, printed("projection "+k.String(), c, showProjection))
	}
	for k, c := range d.Workloads {
		out = append(out, printed("workload "+k, c, showWorkload))
	}
	for k, c := range d.Endpoints {
		text := "endpoints " + k.String() + ":"
		for _, e := range c.New.All() {
			text += "\n    " + showEndpoint(e)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func printed[V comparable](what string, c snapshot.Change[V], show func(V) string) string {
	var none V
	if c.New == none {
		return what + ": gone"
	}
	return what + ": " + strings.TrimSpace(show(c.New))
}

func showObject(v value.Value) string {
	switch v := v.(type) {
	case *value.Namespace:
		return showLabels(v.Labels) + word(" near=", v.TrafficDistribution)
	case *value.VirtualService:
		return showVisibility(v.Export) + showModel(v.Routing)
	case *value.DestinationRule:
		return showVisibility(v.Export) + showModel(v.DestinationPolicy)
	case *value.Gateway:
		return showModel(v.GatewaySettings)
	case *value.Sidecar:
		return showModel(v.SidecarSettings)
	case *value.PeerAuthentication:
		mode := "-"
		if v.Mode != nil {
			mode = fmt.Sprint(*v.Mode)
		}
		return showLabels(v.Labels) + mode
	case *value.AuthorizationPolicy:
		return showModel(*v)
	case *value.RequestAuthentication:
		return showModel(*v)
	}
	panic(fmt.Sprintf("no text for %T", v))
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

// showModel returns all that is set in a value, by the names of its fields.
func showModel(v any) string {
	return strings.ReplaceAll(fmt.Sprint(plain(reflect.ValueOf(v))), "map[", "[")
}

func plain(v reflect.Value) any {
	if s, ok := v.Interface().(fmt.Stringer); ok && v.Kind() != reflect.Pointer {
		return s.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return plain(v.Elem())
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if at := v.FieldByIndex(f.Index); !f.Anonymous && !at.IsZero() {
				out[f.Name] = plain(at)
			}
		}
		return out
	}
	return v.Interface()
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
	batches []*snapshot.Delta
	whole   snapshot.Delta // from nothing
	state   published
}

func newKeeper() *keeper { return &keeper{state: newPublished()} }

// Apply holds the old value of each change against what is there.
func (k *keeper) Apply(d *snapshot.Delta) {
	k.batches = append(k.batches, d)
	k.whole.Merge(d)
	s := &k.state
	lay(s.objects, d.Objects)
	lay(s.services, d.Services)
	lay(s.projections, d.Projections)
	lay(s.endpoints, d.Endpoints)
	lay(s.workloads, d.Workloads)
}

func lay[K, V comparable](state map[K]V, changes snapshot.Changes[K, V]) {
	var none V
	for key, c := range changes {
		if state[key] != c.Old {
			panic(fmt.Sprintf("%v changes from %v, and was %v", key, c.Old, state[key]))
		}
		if state[key] = c.New; c.New == none {
			delete(state, key)
		}
	}
}

func quiet(t testing.TB) Settings { return Settings{Log: testLog(t)} }
