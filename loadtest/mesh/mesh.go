package mesh

import (
	"fmt"
	"math/rand/v2"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Shape is the size and kind of a mesh. Shares are parts of the Services, from 0 to 1.
type Shape struct {
	Seed uint64 `json:"seed"`
	// Namespaces hold the Services in turn; Services have Pods each.
	Namespaces int `json:"namespaces"`
	Services   int `json:"services"`
	Pods       int `json:"pods"`
	// TCP have a second port, for a protocol that is not HTTP. Every Service has port 80 for HTTP.
	TCP float64 `json:"tcp,omitempty"`
	// VirtualServices have one, with two routes; the Services with DestinationRules have subsets, one for each version.
	VirtualServices  float64 `json:"virtualServices,omitempty"`
	DestinationRules float64 `json:"destinationRules,omitempty"`
	// OutlierDetection is the share of the DestinationRules that have it: endpoints depend on the client's locality then.
	OutlierDetection float64 `json:"outlierDetection,omitempty"`
	// Extensions is how many extensions a proxy lists, as upstream Envoy does; 0 is one that lists none, as Istio's proxy.
	Extensions int `json:"extensions,omitempty"`
}

// Usual is the shape of design.md's budgets: services × 2 pods over ten namespaces.
func Usual(services int) Shape {
	return Shape{Seed: 1, Namespaces: 10, Services: services, Pods: 2, TCP: 0.1, VirtualServices: 0.2, DestinationRules: 0.2}
}

// Mesh makes the objects of a Shape. Immutable.
type Mesh struct{ Shape }

// New is the mesh of a shape.
func New(s Shape) *Mesh { return &Mesh{s} }

// Workloads is the number of workloads.
func (m *Mesh) Workloads() int { return m.Services * m.Pods }

// chance decides by the seed whether one of a share is service s; what tells shares apart.
func (m *Mesh) chance(what uint64, s int, share float64) bool {
	return rand.New(rand.NewPCG(m.Seed, what<<32|uint64(s))).Float64() < share
}

// Numbers that tell the shares apart.
const (
	tcp = iota
	virtualService
	destinationRule
	outlierDetection
	templateHash
)

func (m *Mesh) tcp(s int) bool { return m.chance(tcp, s, m.TCP) }

// routed reports whether service s has a VirtualService; the first has, for RouteChange.
func (m *Mesh) routed(s int) bool { return s == 0 || m.chance(virtualService, s, m.VirtualServices) }

func (m *Mesh) ruled(s int) bool { return m.chance(destinationRule, s, m.DestinationRules) }

func (m *Mesh) namespace(s int) string { return fmt.Sprintf("team-%03d", s%m.Namespaces) }

func (m *Mesh) service(s int) string { return fmt.Sprintf("service-%05d", s) }

// Host is the host name of service s.
func (m *Mesh) Host(s int) string {
	return fmt.Sprintf("%s.%s.svc.cluster.local", m.service(s), m.namespace(s))
}

// place is the service of workload i, and which of its pods it is. Consecutive workloads are of different services.
func (m *Mesh) place(i int) (service, pod int) { return i % m.Services, i / m.Services }

// version of a pod: pods have them in turn.
func version(pod int) string { return fmt.Sprintf("v%d", 1+pod%2) }

// hash is the pod template hash of a workload.
func (m *Mesh) hash(i int) string {
	return fmt.Sprintf("%010x", rand.New(rand.NewPCG(m.Seed, templateHash<<32|uint64(i))).Uint64()>>24)
}

// name of a pod, as a Deployment makes it.
func (m *Mesh) name(i int) string {
	s, pod := m.place(i)
	return fmt.Sprintf("%s-%s-%s-%04x", m.service(s), version(pod), m.hash(i), i&0xffff)
}

func (m *Mesh) address(i int) string {
	return fmt.Sprintf("10.%d.%d.%d", 1+i/(250*250), i/250%250, 1+i%250)
}

// labels of a workload.
func (m *Mesh) labels(i int) map[string]string {
	s, pod := m.place(i)
	return map[string]string{
		"app": m.service(s), "version": version(pod), "pod-template-hash": m.hash(i), "workload": m.name(i),
		"service.istio.io/canonical-name": m.service(s) + "-" + version(pod), "service.istio.io/canonical-revision": version(pod),
		"security.istio.io/tlsMode": "istio", "sidecar.istio.io/inject": "true", "team": m.namespace(s),
	}
}

// Node is what the sidecar of workload i says of itself.
func (m *Mesh) Node(i int) *corev3.Node {
	s, pod := m.place(i)
	ns := m.namespace(s)
	labels := map[string]any{}
	for k, v := range m.labels(i) {
		labels[k] = v
	}
	md, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": ns, "CLUSTER_ID": "Kubernetes", "NAME": m.name(i), "INSTANCE_IPS": m.address(i), "SERVICE_ACCOUNT": m.service(s),
		"ISTIO_VERSION": "1.30.0", "INTERCEPTION_MODE": "REDIRECT", "MESH_ID": "cluster.local", "NODE_NAME": m.node(i), "LABELS": labels,
		"WORKLOAD_NAME": m.service(s) + "-" + version(pod), "OWNER": fmt.Sprintf("kubernetes://apis/apps/v1/namespaces/%s/deployments/%s-%s", ns, m.service(s), version(pod)),
	})
	if err != nil {
		panic(err) // strings and maps of strings always are a Struct
	}
	n := &corev3.Node{
		Id: fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.cluster.local", m.address(i), m.name(i), ns, ns), Metadata: md,
		Cluster:       m.service(s) + "." + ns,
		Locality:      &corev3.Locality{Region: "region-1", Zone: m.zone(i)},
		UserAgentName: "envoy",
	}
	for e := range m.Extensions {
		n.Extensions = append(n.Extensions, &corev3.Extension{Name: fmt.Sprintf("envoy.filters.http.some_filter_%d", e),
			Category: "envoy.filters.http", TypeUrls: []string{"envoy.extensions.filters.http.some_filter.v3.SomeFilter"}})
	}
	return n
}

// nodes is how many Kubernetes nodes the pods are spread over, and zones how many zones these.
const nodes, zones = 30, 3

func (m *Mesh) node(i int) string { return fmt.Sprintf("node-%02d", i%nodes) }

func (m *Mesh) zone(i int) string { return fmt.Sprintf("region-1-%c", 'a'+i%nodes%zones) }
