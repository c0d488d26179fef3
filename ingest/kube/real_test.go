package kube

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/snapshot/value"
)

const realObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: app, labels: {team: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Node
metadata: {name: node-a, labels: {topology.kubernetes.io/region: r}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "rootNamespace: istio-system"}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: app}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: app, labels: {app: web}, annotations: {note: x, sidecar.istio.io/status: "{}"}}
spec: {nodeName: node-a, containers: [{name: web, image: web, env: [{name: A, value: b}]}]}
status: {phase: Running, podIP: 10.1.0.1, podIPs: [{ip: 10.1.0.1}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: app, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1], conditions: {ready: true}}]
ports: [{port: 8080}]
`

func realVS(name, host string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: " + name +
		", namespace: default}\n" +
		"spec: {hosts: [" + host + "], http: [{route: [{destination: {host: " + host + "}}]}]}\n"
}

const anotherService = "apiVersion: v1\nkind: Service\nmetadata: {name: another, namespace: app}\nspec: {ports: [{port: 80}]}\n"

const crdOfVirtualServices = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: virtualservices.networking.istio.io}\n"

// A real API server, from before Istio is installed to after an outage.
func TestRealServer(t *testing.T) {
	if _, err := os.Stat(os.Getenv("APISERVER")); err != nil {
		t.Fatalf("APISERVER names no API server (%v): `make unit` builds one and sets it", err)
	}
	api := parts.StartAPIServer(t)
	cluster := parts.NewBareCluster(t, api)
	cluster.Apply(realObjects)
	cfg, err := RESTConfig(Options{Kubeconfig: api.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, strings.TrimPrefix(cfg.Host, "https://"))
	cfg.Host = "https://" + g.addr
	r := start(t, Options{Config: cfg})
	r.Until(t, "sync", synced)
	checkWorld(t, r.Now())

	cluster.InstallCRDs()
	cluster.Apply(realVS("x", "x.com"))
	r.Until(t, "an object of a kind that came later", hosts("x", "x.com"))

	unserved := value.ObjectKey{Kind: value.KindOf("telemetry.istio.io", "Telemetry"), Namespace: "app", Name: "logs"}
	cluster.Apply("apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: logs, namespace: app}\nspec: {accessLogging: [{disabled: true}]}\n")
	r.Until(t, "an object of a kind that is not served", func(told *sinktest.Told) bool {
		return told.Objects[unserved].Object == any(ingest.NotServed{})
	})

	pod := value.ObjectKey{Kind: value.KindPod, Namespace: "app", Name: "web-1"}
	cluster.Apply(strings.Replace(podOf(realObjects), "phase: Running", "phase: Succeeded", 1))
	r.Until(t, "the end of a pod that ended", func(told *sinktest.Told) bool { return !has(pod)(told) })

	g.shut()
	cluster.Apply(realVS("x", "x2.com") + "---\n" + anotherService)
	cluster.Delete("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: app}\n")
	if told := r.Now(); host(told, "x") != "x.com" || !has(service("web"))(told) {
		t.Error("something changed while the server was away")
	}
	g.open()
	r.Until(t, "what happened meanwhile", func(told *sinktest.Told) bool {
		return host(told, "x") == "x2.com" && has(service("another"))(told) && !has(service("web"))(told)
	})

	cluster.Delete(crdOfVirtualServices)
	r.Until(t, "the end of a kind", hosts("x", ""))
	cluster.InstallCRDs()
	cluster.Apply(realVS("second", "second.com"))
	r.Until(t, "its return", hosts("second", "second.com"))
}

func service(name string) value.ObjectKey {
	return value.ObjectKey{Kind: value.KindService, Namespace: "app", Name: name}
}

func podOf(objects string) string {
	for text := range strings.SplitSeq(objects, "---\n") {
		if strings.Contains(text, "kind: Pod") {
			return text
		}
	}
	return ""
}

func checkWorld(t *testing.T, told *sinktest.Told) {
	t.Helper()
	for _, key := range []value.ObjectKey{
		{Kind: value.KindNamespace, Name: "app"}, {Kind: value.KindNode, Name: "node-a"}, service("web"),
		{Kind: value.KindEndpointSlice, Namespace: "app", Name: "web-1"}, {Kind: value.KindMeshConfig, Name: "mesh"},
	} {
		if !has(key)(told) {
			t.Errorf("synced without %v", key)
		}
	}
	pod, _ := told.Objects[value.ObjectKey{Kind: value.KindPod, Namespace: "app", Name: "web-1"}].Object.(*ingest.Pod)
	if got := fmt.Sprint(pod); pod == nil || !strings.Contains(got, "10.1.0.1") ||
		strings.Contains(got, "sidecar.istio.io") {
		t.Errorf("kept of the pod: %v", got)
	}
}
