package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/gateway"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// factsOf returns the Facts of a proxy under a View: what nothing reads is left out.
func factsOf(v *snapshot.View, p *proxy.Proxy) (scope.Facts, value.Labels) {
	n := v.Snapshot
	locality, node := p.Locality, p.Node
	w := workload.Of(v, p)
	labels := w.Labels()
	if r := w.Registered; r != nil { // what the registry says of the workload wins over what the proxy says
		locality = r.Locality
		if r.Node != "" {
			node = r.Node
		}
	}
	read := n.LabelsRead(p.Namespace, labels)
	f := scope.Facts{Traits: p.Traits, Namespace: p.Namespace, Labels: value.LabelsKey(read), ClusterID: p.ClusterID,
		Network: p.Network}
	if p.Traits.Type != value.Router {
		f.Sidecar = w.Sidecar(labels)
	} else {
		f.OwnPorts, f.Policies = gateway.OwnPorts(w), n.PoliciesFor(p.Namespace, labels)
	}
	if n.LocalityMatters() {
		f.Locality = locality
	}
	if n.NodeMatters() {
		f.Node = node
	}
	return f, read
}

// ownOf returns what the proxy's own configuration depends on, and the part of the class's identity that it makes.
func ownOf(v *snapshot.View, p *proxy.Proxy) (*inbound.Facts, string) {
	own := &inbound.Facts{Traits: p.Traits, Namespace: p.Namespace}
	if p.Traits.Type == value.Router {
		return own, ""
	}
	w := workload.Of(v, p)
	labels := w.Labels()
	own.Targets, own.Sidecar, own.Peers = w.Targets(), w.Sidecar(labels), v.Snapshot.PeerPolicies(p.Namespace).Of(labels)
	// A gRPC server takes one or the other. Clients expect mutual TLS of a workload that says that it speaks it.
	if p.Traits.Type == value.Proxyless && labels[tlsModeLabel] == "istio" {
		own.Peers = own.Peers.Stricter()
	}
	var id strings.Builder
	if m := own.Peers; m.Mode != value.Permissive || m.Ports != "" {
		fmt.Fprintf(&id, " mtls=%d %s", m.Mode, m.Ports)
	}
	own.Policies = v.Snapshot.PoliciesFor(p.Namespace, labels)
	id.WriteString(policiesID(own.Policies))
	for _, t := range own.Targets {
		fmt.Fprintf(&id, " %s:%d:%d", t.Service.ServiceKey, t.Port.Number, t.Number)
	}
	// The ports that a Sidecar object declares are named after the workload's address.
	addressed := slices.ContainsFunc(own.Targets, func(t workload.Target) bool { return t.Service.Headless }) ||
		own.Sidecar != nil && len(own.Sidecar.Ingress) > 0
	if addressed || p.Traits.Interception == value.NoInterception || p.Traits.Type == value.Proxyless {
		own.Addresses = p.Addresses
		fmt.Fprintf(&id, " @%s", strings.Join(p.Addresses, ","))
	}
	return own, id.String()
}

// policiesID tells the policies of a workload from those of others: by their names, for policies are what they are for
// all whom they select. There may be many, so that it is a sum over them.
func policiesID(p value.Policies) string {
	if p.Empty() {
		return ""
	}
	var names strings.Builder
	for _, o := range p.Objects() {
		fmt.Fprintf(&names, "%s\n", o)
	}
	sum := sha256.Sum256([]byte(names.String()))
	return " policies=" + hex.EncodeToString(sum[:16])
}

// tlsModeLabel is the label by which a workload says what its endpoints speak.
const tlsModeLabel = "security.istio.io/tlsMode"

// newClass returns a class by the Facts of its base and by id, of which it also gives a copy that lies in its name.
func newClass(f *scope.Facts, id string, serial int) (c classes.Class, same string) {
	kind := map[value.NodeType]string{value.SidecarProxy: "sidecar", value.Router: "router",
		value.Proxyless: "grpc"}[f.Traits.Type]
	before := kind + " " + f.Namespace
	c = classes.Class{Name: fmt.Sprintf("%s%s #%d", before, id, serial), Type: f.Traits.Type}
	return c, c.Name[len(before):][:len(id)]
}
