package e2e_test

import (
	"fmt"
	"strings"

	"github.com/pilotd/pilotd/e2e/parts"
)

// The sample mesh: service web in namespace shop with one pod of v1 and two of v2, and
// a gateway that shows it as web.example.com.
const (
	webHost    = "web.shop.svc.cluster.local"
	publicHost = "web.example.com"
	webVIP     = "10.96.1.1"
)

// pod is one pod of the sample mesh.
type pod struct {
	name, namespace, ip, labels string
}

func (p pod) workload() parts.Workload {
	labels := make(map[string]string)
	for label := range strings.SplitSeq(p.labels, ", ") {
		name, value, _ := strings.Cut(label, ": ")
		labels[name] = value
	}
	return parts.Workload{Name: p.name, Namespace: p.namespace, IP: p.ip, Labels: labels}
}

func (p pod) yaml() string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s, labels: {%[4]s}}
spec: {nodeName: n1, serviceAccountName: default, containers: [{name: app, image: app}]}
status:
  phase: Running
  podIP: %[3]s
  podIPs: [{ip: %[3]s}]
  conditions: [{type: Ready, status: "True"}]
`, p.name, p.namespace, p.ip, p.labels)
}

// The pods of the sample mesh. Labels with a slash are quoted by nobody: YAML takes them.
func clientDelta() pod { return pod{"client-delta", "shop", "10.244.1.1", "app: client"} }
func clientSotW() pod  { return pod{"client-sotw", "shop", "10.244.1.2", "app: client"} }
func clientGRPC() pod  { return pod{"client-grpc", "shop", "10.244.1.3", "app: client"} }
func webV1() pod       { return pod{"web-v1", "shop", "10.244.2.1", "app: web, version: v1"} }
func webV2a() pod      { return pod{"web-v2-a", "shop", "10.244.2.2", "app: web, version: v2"} }
func webV2b() pod      { return pod{"web-v2-b", "shop", "10.244.2.3", "app: web, version: v2"} }
func gatewayDelta() pod {
	return pod{"gateway-delta", "istio-system", "10.244.3.1", "app: gateway, istio: ingressgateway"}
}
func gatewaySotW() pod {
	return pod{"gateway-sotw", "istio-system", "10.244.3.2", "app: gateway, istio: ingressgateway"}
}

// outsider returns a client that is no part of the mesh.
func outsider() pod { return pod{"outsider", "", "10.244.9.1", ""} }

// service returns the Service key ("namespace/name") of the sample mesh; ports is the YAML of its ports.
func service(key, vip, selector, ports string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s}
spec: {clusterIP: %s, selector: {%s}, ports: [%s]}
`, name, namespace, vip, selector, ports)
}

// slice returns the EndpointSlice that the endpoint controller would write for a service.
func slice(service, namespace, ports string, pods ...pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: %[2]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [%[3]s]
endpoints:
`, service, namespace, ports)
	for _, p := range pods {
		fmt.Fprintf(&b, "- {addresses: [%s], nodeName: n1, conditions: {ready: true, serving: true, terminating: false}, targetRef: {kind: Pod, name: %s, namespace: %s}}\n",
			p.ip, p.name, p.namespace)
	}
	return b.String()
}

const (
	webPorts      = "{name: http, port: 80, targetPort: 8080}, {name: grpc, port: 7070, targetPort: 7070}, {name: tcp, port: 9000, targetPort: 9000}"
	webSlicePorts = "{name: http, port: 8080, protocol: TCP}, {name: grpc, port: 7070, protocol: TCP}, {name: tcp, port: 9000, protocol: TCP}"
)

func webSlice(pods ...pod) string { return slice("web", "shop", webSlicePorts, pods...) }

// baseMesh returns the sample mesh but for its routes.
func baseMesh() string { return namespaces() + podsAndServices() + istioObjects() }

func namespaces() string {
	return `
---
{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
`
}

func podsAndServices() string {
	var b strings.Builder
	for _, p := range []pod{clientDelta(), clientSotW(), clientGRPC(), webV1(), webV2a(), webV2b(), gatewayDelta(),
		gatewaySotW()} {
		b.WriteString(p.yaml())
	}
	b.WriteString(service("shop/web", webVIP, "app: web", webPorts))
	b.WriteString(webSlice(webV1(), webV2a(), webV2b()))
	b.WriteString(service("istio-system/gateway", "10.96.3.1", "app: gateway",
		"{name: http, port: 80, targetPort: 8080}"))
	b.WriteString(slice("gateway", "istio-system", "{name: http, port: 8080, protocol: TCP}", gatewayDelta(),
		gatewaySotW()))
	return b.String()
}

// istioObjects names web's subsets and opens the gateway.
func istioObjects() string {
	return `
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: istio-system}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {name: http, number: 80, protocol: HTTP}, hosts: ["*.example.com"]}]
`
}

// weights returns the route to web, from sidecars, from the gateway, and for gRPC.
func weights(v1, v2 int) string {
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local, web.example.com]
  gateways: [mesh, istio-system/front]
  http:
  - name: tester
    match: [{headers: {end-user: {exact: tester}}}]
    route: [{destination: {host: web.shop.svc.cluster.local, subset: v1, port: {number: 80}}}]
  - name: weighted
    match: [{port: 80}]
    route:
    - {destination: {host: web.shop.svc.cluster.local, subset: v1, port: {number: 80}}, weight: %[1]d}
    - {destination: {host: web.shop.svc.cluster.local, subset: v2, port: {number: 80}}, weight: %[2]d}
  - name: grpc
    match: [{port: 7070}]
    route:
    - {destination: {host: web.shop.svc.cluster.local, subset: v1, port: {number: 7070}}, weight: %[1]d}
    - {destination: {host: web.shop.svc.cluster.local, subset: v2, port: {number: 7070}}, weight: %[2]d}
`, v1, v2)
}
