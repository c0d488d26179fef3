package mesh

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Node returns the node that the sidecar of workload i sends.
func (m *Mesh) Node(i int) *corev3.Node {
	s, pod := m.servicePod(i)
	return m.sidecarNode(s, instance{pod: pod})
}

func (m *Mesh) sidecarNode(s int, p instance) *corev3.Node {
	w := m.at(s, p)
	n := w.node("sidecar", map[string]any{"INTERCEPTION_MODE": "REDIRECT"})
	for e := range m.Extensions {
		n.Extensions = append(n.Extensions, &corev3.Extension{Name: fmt.Sprintf("envoy.filters.http.some_filter_%d", e),
			Category: "envoy.filters.http",
			TypeUrls: []string{"envoy.extensions.filters.http.some_filter.v3.SomeFilter"}})
	}
	return n
}

// Account returns the namespace and the service account of workload i.
func (m *Mesh) Account(i int) (namespace, name string) {
	s, pod := m.servicePod(i)
	w := m.at(s, instance{pod: pod})
	return w.namespace, w.app
}

// node returns the node that a proxy of a kind sends; own is added to the metadata.
func (w *workload) node(kind string, own map[string]any) *corev3.Node {
	labels := map[string]any{}
	for k, v := range w.labels() {
		labels[k] = v
	}
	facts := map[string]any{
		"NAMESPACE": w.namespace, "CLUSTER_ID": "Kubernetes", "NAME": w.name, "INSTANCE_IPS": w.address,
		"SERVICE_ACCOUNT": w.app,
		"ISTIO_VERSION":   "1.30.0", "MESH_ID": "cluster.local", "NODE_NAME": node(w.number), "LABELS": labels,
		"WORKLOAD_NAME": w.deployment(),
		"OWNER": fmt.Sprintf("kubernetes://apis/apps/v1/namespaces/%s/deployments/%s", w.namespace,
			w.deployment()),
	}
	for k, v := range own {
		facts[k] = v
	}
	md, err := structpb.NewStruct(facts)
	if err != nil {
		panic(err) // cannot fail for strings and maps of strings
	}
	return &corev3.Node{
		Id: fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", kind, w.address, w.name, w.namespace,
			w.namespace),
		Metadata:      md,
		Cluster:       w.app + "." + w.namespace,
		Locality:      &corev3.Locality{Region: "region-1", Zone: zone(w.number)},
		UserAgentName: "envoy",
	}
}
