package mesh

import (
	"fmt"
	"math/rand/v2"
)

// Mesh makes the objects of a Shape. Immutable.
type Mesh struct{ Shape }

// New returns the mesh of a shape.
func New(s Shape) *Mesh { return &Mesh{s} }

// Numbers that distinguish random choices.
const (
	tcp = iota
	virtualService
	destinationRule
	outlierDetection
	templateHash
	grpc
	sidecarImports
	gatewayRoutes
)

// random returns a random source for one choice; what distinguishes the choices.
func (m *Mesh) random(what uint64, i int) *rand.Rand {
	return rand.New(rand.NewPCG(m.Seed, what<<32|uint64(i)))
}

// chance decides, by the seed, whether service s is among the given share.
func (m *Mesh) chance(what uint64, s int, share float64) bool {
	return m.random(what, s).Float64() < share
}

func (m *Mesh) tcp(s int) bool { return m.headless(s) || m.chance(tcp, s, m.TCP) }

func (m *Mesh) grpc(s int) bool { return m.chance(grpc, s, m.GRPC) }

// routed reports whether service s has a VirtualService; the first has, for Route edits.
func (m *Mesh) routed(s int) bool { return s == 0 || m.chance(virtualService, s, m.VirtualServices) }

func (m *Mesh) ruled(s int) bool { return m.chance(destinationRule, s, m.DestinationRules) }

// Size returns the number of services of workloads.
func (m *Mesh) Size() int { return m.services() }

// services returns their number. The large ones come first, then the ordinary ones, then the headless ones.
func (m *Mesh) services() int { return m.Large.Services + m.Services + m.Headless.Services }

func (m *Mesh) large(s int) bool { return s < m.Large.Services }

func (m *Mesh) headless(s int) bool { return s >= m.Large.Services+m.Services }

// replicas returns the number of pods of service s before any edit.
func (m *Mesh) replicas(s int) int {
	switch {
	case m.large(s):
		return m.Large.Pods
	case m.headless(s):
		return m.Headless.Pods
	}
	return m.Pods
}

// Workloads returns the number of workloads other than gateways.
func (m *Mesh) Workloads() int {
	return m.Services*m.Pods + m.Large.Services*m.Large.Pods + m.Headless.Services*m.Headless.Pods
}

// servicePod returns the service and the pod of workload i. Workloads of ordinary services come first; consecutive ones
// belong to different services.
func (m *Mesh) servicePod(i int) (service, pod int) {
	if i < m.Services*m.Pods {
		return m.Large.Services + i%m.Services, i / m.Services
	}
	if i -= m.Services * m.Pods; i < m.Large.Services*m.Large.Pods {
		return i % m.Large.Services, i / m.Large.Services
	}
	i -= m.Large.Services * m.Large.Pods
	return m.Large.Services + m.Services + i%m.Headless.Services, i / m.Headless.Services
}

// workload returns the number of a pod of service s. Pods that edits add have numbers above those of all workloads.
func (m *Mesh) workload(s, pod int) int {
	large := m.Services * m.Pods
	switch {
	case pod >= m.replicas(s):
		return m.Workloads() + m.Gateways() + pod*m.services() + s
	case m.large(s):
		return large + pod*m.Large.Services + s
	case m.headless(s):
		return large + m.Large.Services*m.Large.Pods + pod*m.Headless.Services + s - m.Large.Services - m.Services
	}
	return pod*m.Services + s - m.Large.Services
}

func (m *Mesh) namespace(s int) string { return fmt.Sprintf("team-%03d", s%m.Namespaces) }

func (m *Mesh) service(s int) string {
	switch {
	case m.large(s):
		return fmt.Sprintf("large-%05d", s)
	case m.headless(s):
		return fmt.Sprintf("headless-%05d", s-m.Large.Services-m.Services)
	}
	return fmt.Sprintf("service-%05d", s-m.Large.Services)
}

// Host returns the host name of service s.
func (m *Mesh) Host(s int) string {
	return fmt.Sprintf("%s.%s.svc.cluster.local", m.service(s), m.namespace(s))
}

// version returns the version of a pod: versions alternate.
func version(pod int) string { return fmt.Sprintf("v%d", 1+pod%2) }

// address returns the i-th address of pods.
func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", 1+i/(250*250), i/250%250, 1+i%250) }

// maxAddresses is the number of pod addresses.
const maxAddresses = 254 * 250 * 250

// nodes is the number of Kubernetes nodes, and zones the number of zones that they are in.
const nodes, zones = 30, 3

func node(i int) string { return fmt.Sprintf("node-%02d", i%nodes) }

func zone(i int) string { return fmt.Sprintf("region-1-%c", 'a'+i%nodes%zones) }
