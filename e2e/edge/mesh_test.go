package edge_test

import (
	"fmt"
	"strings"

	"github.com/pilotd/pilotd/e2e/parts"
)

// The mesh that is there always. Tenant good owns the namespace good; tenant hostile owns h0 (services t0, t1, … that
// generated objects are about), and h1, where its own sidecar runs. All share the gateway in istio-system, port 80 of
// every sidecar, and port 80 of the gateway.
const (
	webVIP     = "10.96.1.1"
	webHost    = "web.good.svc.cluster.local"
	publicHost = "shop.example.com"
	gatewayIP  = "10.244.3.1"
	webIP      = "10.244.2.1"
	// long is how old the good tenant is: of two objects in conflict the older one decides.
	goodAge    = "2020-01-01T00:00:00Z"
	hostileAge = "2024-01-01T00:00:00Z"
)

// slots is how many objects a batch has at most.
const slots = 30

func workload(name, namespace, ip, app string) parts.Workload {
	return parts.Workload{Name: name, Namespace: namespace, IP: ip, Labels: map[string]string{"app": app}}
}

func podYAML(w parts.Workload, more string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s, creationTimestamp: %[5]s, labels: {app: %[4]s%[6]s}}
spec: {nodeName: node, serviceAccountName: default, containers: [{name: app, image: app}]}
status: {phase: Running, podIP: %[3]s, podIPs: [{ip: %[3]s}], conditions: [{type: Ready, status: "True"}]}
`, w.Name, w.Namespace, w.IP, w.Labels["app"], goodAge, more)
}

// service is a Service with its EndpointSlice. The ports of both are YAML.
type service struct {
	name, namespace, vip, app string
	ports, slicePorts         string
	endpoint                  string // its address
}

func (s service) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s, creationTimestamp: %[6]s}
spec: {clusterIP: %[3]s, selector: {app: %[4]s}, ports: [%[5]s]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: %[2]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [%[7]s]
endpoints:
`, s.name, s.namespace, s.vip, s.app, s.ports, goodAge, s.slicePorts)
	fmt.Fprintf(&b, "- {addresses: [%s], nodeName: node, conditions: {ready: true, serving: true, terminating: false}}\n",
		s.endpoint)
	return b.String()
}

func clientDelta() parts.Workload { return workload("client-delta", "good", "10.244.1.1", "client") }
func clientSotW() parts.Workload  { return workload("client-sotw", "good", "10.244.1.2", "client") }
func lateClient() parts.Workload  { return workload("client-late", "good", "10.244.1.3", "client") }
func hostile() parts.Workload {
	return workload("hostile", "h1", "10.244.4.1", "hostile-sidecar")
}
func gateway() parts.Workload {
	w := workload("gateway", "istio-system", gatewayIP, "gateway")
	w.Labels["istio"] = "ingressgateway"
	return w
}
func lateGateway() parts.Workload {
	w := workload("gateway-late", "istio-system", "10.244.3.2", "gateway")
	w.Labels["istio"] = "ingressgateway"
	return w
}

// baseMesh returns all of the mesh but the good tenant's route and what is generated.
func baseMesh() string {
	var b strings.Builder
	for _, ns := range []string{"istio-system", "good", "h0", "h1"} {
		fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", ns)
	}
	b.WriteString("---\n{apiVersion: v1, kind: Node, metadata: {name: node, labels: {topology.kubernetes.io/region: r1, topology.kubernetes.io/zone: z1}}}\n")
	for _, w := range []parts.Workload{clientDelta(), clientSotW(), lateClient(), workload("web", "good", webIP, "web"),
		hostile()} {
		b.WriteString(podYAML(w, ""))
	}
	b.WriteString(podYAML(gateway(), ", istio: ingressgateway"))
	b.WriteString(podYAML(lateGateway(), ", istio: ingressgateway"))
	b.WriteString(service{"web", "good", webVIP, "web",
		"{name: http, port: 80, targetPort: 8080}, {name: tcp, port: 9000, targetPort: 9000}, {name: grpc, port: 7070}",
		"{name: http, port: 8080}, {name: tcp, port: 9000}, {name: grpc, port: 7070}", webIP}.yaml())
	b.WriteString(service{"gateway", "istio-system", "10.96.3.1", "gateway",
		"{name: http, port: 80, targetPort: 8080}, {name: tls, port: 8443}, {name: pass, port: 9443}, {name: tcp, port: 9000}",
		"{name: http, port: 8080}, {name: tls, port: 8443}, {name: pass, port: 9443}, {name: tcp, port: 9000}",
		gatewayIP}.yaml())
	b.WriteString(service{"hostile", "h1", "10.96.4.1", "hostile-sidecar",
		"{name: http, port: 80, targetPort: 8080}", "{name: http, port: 8080}", hostile().IP}.yaml())
	for i := range slots {
		b.WriteString(service{fmt.Sprint("t", i), "h0", fmt.Sprint("10.96.20.", i+1), "t",
			"{name: http, port: 80, targetPort: 8080}, {name: tcp, port: 9000}, {name: grpc, port: 7070}, {name: https, port: 443}",
			"{name: http, port: 8080}, {name: tcp, port: 9000}, {name: grpc, port: 7070}, {name: https, port: 443}",
			fmt.Sprint("10.244.60.", i+1)}.yaml())
	}
	b.WriteString(sharedObjects())
	return b.String()
}

// sharedObjects open the gateway to both tenants, and bind the hostile one's generated Gateways to a route.
func sharedObjects() string {
	var names []string
	for i := range slots {
		names = append(names, fmt.Sprint("h0/g", i))
	}
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: h0, creationTimestamp: %[1]s}
spec: {clusterIP: None, ports: [{name: http, port: 8085, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: good, creationTimestamp: %[1]s}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {name: http, number: 80, protocol: HTTP}, hosts: [%[3]s]}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: h0, creationTimestamp: %[1]s}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {name: http, number: 80, protocol: HTTP}, hosts: ["*.hostile.example.com"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: for-gateways, namespace: h0, creationTimestamp: %[2]s}
spec:
  hosts: ["*"]
  gateways: [%[4]s]
  http: [{route: [{destination: {host: t0.h0.svc.cluster.local, port: {number: 80}}}]}]
  tcp: [{route: [{destination: {host: t0.h0.svc.cluster.local, port: {number: 9000}}}]}]
  tls: [{match: [{sniHosts: ["*"]}], route: [{destination: {host: t0.h0.svc.cluster.local, port: {number: 443}}}]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: selects, namespace: h0, creationTimestamp: %[2]s}
spec:
  hosts: [selects.hostile.example.com]
  ports: [{name: http, number: 80, protocol: HTTP, targetPort: 8080}, {name: tcp, number: 9100, protocol: TCP}]
  resolution: STATIC
  location: MESH_INTERNAL
  workloadSelector: {labels: {app: wl}}
`, goodAge, hostileAge, publicHost, strings.Join(names, ", "))
}

// goodRoute returns the good tenant's route; its answers carry the round, so that an edit is seen to arrive.
func goodRoute(round int) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: good, creationTimestamp: %[1]s}
spec:
  hosts: [%[2]s, %[3]s]
  gateways: [mesh, good/front]
  http:
  - headers: {response: {set: {x-round: "%[4]d"}}}
    route: [{destination: {host: %[2]s, port: {number: 80}}}]
`, goodAge, webHost, publicHost, round)
}
