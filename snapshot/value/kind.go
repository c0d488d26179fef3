package value

import "strings"

// Kind identifies a kind of object by its name and its API group, "VirtualService.networking.istio.io", for two groups
// may have a kind of one name. Kinds of Kubernetes's core group are a name alone.
type Kind string

// The kinds of which pilotd makes no value of their own: services and endpoints come of several of them. The others
// stand beside their values.
const (
	KindNode          Kind = "Node"
	KindPod           Kind = "Pod"
	KindService       Kind = "Service"
	KindEndpointSlice Kind = "EndpointSlice.discovery.k8s.io"
	KindServiceEntry  Kind = "ServiceEntry.networking.istio.io"
	KindWorkloadEntry Kind = "WorkloadEntry.networking.istio.io"
)

// The kinds of what gateways ask for by name. They become no values: see package secrets.
const (
	KindSecret    Kind = "Secret"
	KindConfigMap Kind = "ConfigMap"
)

// KindOf returns the kind of that group and name.
func KindOf(group, name string) Kind {
	if group == "" {
		return Kind(name)
	}
	return Kind(name + "." + group)
}

// Name returns the kind's name in its group, "VirtualService".
func (k Kind) Name() string {
	name, _, _ := strings.Cut(string(k), ".")
	return name
}

// Group returns the kind's API group, "networking.istio.io"; empty for Kubernetes's core group.
func (k Kind) Group() string {
	_, group, _ := strings.Cut(string(k), ".")
	return group
}

// String returns what logs, pages and metrics call the kind: its name alone, if it is one of Kubernetes's own or of
// Istio's.
func (k Kind) String() string {
	switch group := k.Group(); {
	case group == "discovery.k8s.io", group == "apiextensions.k8s.io", strings.HasSuffix(group, ".istio.io"):
		return k.Name()
	}
	return string(k)
}

// MarshalText writes the kind as String does.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// ObjectKey identifies an object.
type ObjectKey struct {
	// Cluster is the id of the cluster that has the object; empty for the one that pilotd belongs to, whose id is
	// Mesh.ClusterID, and for what is in no cluster.
	Cluster string `json:",omitempty"`
	Kind    Kind
	// Namespace is empty for objects that are in none.
	Namespace string
	Name      string
}

// String returns "Kind namespace/name", with the cluster behind it where it is another one.
func (k ObjectKey) String() string {
	text := k.Kind.String() + " "
	if k.Namespace != "" {
		text += k.Namespace + "/"
	}
	text += k.Name
	if k.Cluster != "" {
		text += " in " + k.Cluster
	}
	return text
}
