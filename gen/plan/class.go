package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Class is one class of proxies: those with equal Facts and the same workload ports of their own. One pointer for the
// life of the class, which ends with its last proxy. Immutable.
type Class struct {
	// Name is a short readable form, for logs and metrics: "sidecar shop web.shop:8080 #12".
	Name string
	// Type is the kind of its proxies.
	Type value.NodeType
}

// factsOf are the Facts of a proxy under a View: what nothing reads is left out.
func factsOf(v *snapshot.View, p *proxy.Proxy) (Facts, value.Labels) {
	n := v.Snapshot
	locality, node := p.Locality, p.Node
	w := workloadOf(v, p)
	labels := labelsNow(v, p)
	if w != nil { // what the registry says of the workload wins over what the proxy says
		locality = w.Locality
		if w.Node != "" {
			node = w.Node
		}
	}
	read := n.LabelsRead(p.Namespace, labels)
	f := Facts{Traits: p.Traits, Namespace: p.Namespace, Labels: value.LabelsKey(read), ClusterID: p.ClusterID,
		Network: p.Network}
	if p.Traits.Type != value.Router {
		f.Sidecar = sidecarOf(n, p.Namespace, labels)
	} else {
		f.OwnPorts = translatedPorts(v, p)
	}
	if n.LocalityMatters() {
		f.Locality = locality
	}
	if n.NodeMatters() {
		f.Node = node
	}
	return f, read
}

// labelsNow are the labels of a proxy: those of its Pod or WorkloadEntry, else of the oldest ServiceEntry's endpoint at
// its address, even if that has none, else those that the proxy itself reports.
func labelsNow(v *snapshot.View, p *proxy.Proxy) value.Labels {
	if w := workloadOf(v, p); w != nil {
		return w.Labels
	}
	var at *value.Endpoint
	var oldest *value.Service
	for svc := range v.Snapshot.OtherServicesIn(p.Namespace) {
		if oldest != nil && OlderService(oldest, svc) < 0 {
			continue
		}
		for e := range endpointsAt(v, svc, p.Addresses) {
			at, oldest = e, svc
			break
		}
	}
	if at != nil {
		return at.Labels
	}
	return p.Labels.Unpack()
}

// sidecarOf is the Sidecar object in force for a workload: one of its namespace whose selector it satisfies, else its
// namespace's without a selector, else the root namespace's without one. Of several the oldest.
func sidecarOf(n *snapshot.Snapshot, namespace string, labels value.Labels) (best *value.Sidecar) {
	for s := range n.SidecarsSelecting(namespace, labels) {
		if best == nil || s.Older(best.Meta) {
			best = s
		}
	}
	if best != nil {
		return best
	}
	for _, ns := range []string{namespace, n.Mesh.RootNamespace()} {
		for s := range n.SidecarsOfAll(ns) {
			return s
		}
	}
	return nil
}

// ownOf is what the proxy's own configuration depends on, and the part of the class's identity that it makes.
func ownOf(v *snapshot.View, p *proxy.Proxy) (*Own, string) {
	own := &Own{}
	if p.Traits.Type == value.Router {
		return own, ""
	}
	own.Targets = targetsOf(v, p)
	var id strings.Builder
	for _, t := range own.Targets {
		fmt.Fprintf(&id, " %s:%d:%d", t.Service.ServiceKey, t.Port.Number, t.Number)
	}
	addressed := slices.ContainsFunc(own.Targets, func(t Target) bool { return t.Service.Headless }) ||
		declaresIngress(v, p)
	if addressed || p.Traits.Interception == value.NoInterception || p.Traits.Type == value.Proxyless {
		own.Addresses = p.Addresses
		fmt.Fprintf(&id, " @%s", strings.Join(p.Addresses, ","))
	}
	return own, id.String()
}

// declaresIngress reports whether the Sidecar object of a proxy declares its inbound ports, which are named after its
// address.
func declaresIngress(v *snapshot.View, p *proxy.Proxy) bool {
	s := sidecarOf(v.Snapshot, p.Namespace, labelsNow(v, p))
	return s != nil && len(s.Spec.GetIngress()) > 0
}

// newClass is a class by the Facts of its base and by id, of which it also gives a copy that lies in its name.
func newClass(f *Facts, id string, serial int) (c Class, same string) {
	kind := map[value.NodeType]string{value.SidecarProxy: "sidecar", value.Router: "router",
		value.Proxyless: "grpc"}[f.Traits.Type]
	before := kind + " " + f.Namespace
	c = Class{Name: fmt.Sprintf("%s%s #%d", before, id, serial), Type: f.Traits.Type}
	return c, c.Name[len(before):][:len(id)]
}
