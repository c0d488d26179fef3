package e2e_test

import (
	"os"
	"strings"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestEnvoyValidates lets Envoy judge, as static configurations, all that pilotd tells
// each proxy of the example meshes.
func TestEnvoyValidates(t *testing.T) {
	t.Run("tests", func(t *testing.T) {
		w := newWorld(t, inDirectory, baseMesh()+weights(75, 25)+securePod().yaml())
		validates(t, w, parts.Sidecar, clientDelta(), webV1(), securePod())
		validates(t, w, parts.Gateway, gatewayDelta())
	})
	t.Run("sidecar listeners", func(t *testing.T) {
		validates(t, newWorld(t, inDirectory, baseMesh()+sidecarListeners), parts.Sidecar, webV1())
	})
	for name, tls := range map[string]string{
		"none": "", "simple": "{mode: SIMPLE}", "server name": "{mode: SIMPLE, sni: a.example.com}",
		"unverified":        "{mode: SIMPLE, insecureSkipVerify: true}",
		"alternative names": "{mode: SIMPLE, subjectAltNames: [a.example.com]}",
		"within the mesh":   "{mode: ISTIO_MUTUAL}",
		"mutual":            "{mode: MUTUAL, clientCertificate: /c.pem, privateKey: /k.pem}",
	} {
		t.Run("dynamic DNS "+name, func(t *testing.T) {
			w := newWorld(t, func(t *testing.T) parts.Objects {
				return fromFile{Objects: parts.NewDirectory(t), policy: "ALLOW_ANY_DYNAMIC_DNS, tls: " + tls}
			}, baseMesh()+weights(75, 25))
			validates(t, w, parts.Sidecar, clientDelta())
		})
	}
	t.Run("examples", func(t *testing.T) {
		settings, err := os.ReadFile("../examples/mesh-config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, func(*testing.T) parts.Objects {
			return example{path: "../examples/mesh", mesh: string(settings)}
		}, "")
		validates(t, w, parts.Sidecar, pod{"echo-v1", "demo", "127.0.0.11", "app: echo, version: v1"})
		validates(t, w, parts.Gateway, pod{"gateway", "istio-system", "127.0.0.1", "istio: ingressgateway"})
	})
}

// sidecarListeners is a Sidecar with every kind of ingress endpoint and egress listener.
const sidecarListeners = `
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: listeners, namespace: shop}
spec:
  workloadSelector: {labels: {app: web}}
  inboundConnectionPool: {tcp: {maxConnections: 7}}
  ingress:
  - {port: {number: 8080, protocol: HTTP, name: http}, defaultEndpoint: "127.0.0.1:18080"}
  - {port: {number: 7070, protocol: GRPC, name: grpc}, defaultEndpoint: "unix:///var/run/app.sock"}
  - {port: {number: 9000, protocol: TCP, name: tcp}, defaultEndpoint: "0.0.0.0:9001"}
  - {port: {number: 9001, protocol: TCP, name: plain}}
  egress:
  - {port: {number: 80, protocol: HTTP, name: http}, hosts: ["shop/*"]}
  - {port: {number: 9000, protocol: TCP, name: tcp}, bind: 127.0.0.1, captureMode: NONE, hosts: ["*/*"]}
  - {hosts: ["~/*"]}
`

// example is a directory of the tree, which no test changes.
type example struct{ path, mesh string }

func (e example) Apply(string)  {}
func (e example) Delete(string) {}
func (e example) Sources() parts.Sources {
	return parts.Sources{ConfigDir: e.path, MeshConfig: e.mesh}
}

// validates fetches what those pods' proxies are told and hands it to Envoy.
func validates(t *testing.T, w *world, kind parts.ProxyKind, pods ...pod) {
	t.Helper()
	extensions := w.extensions(t)
	for _, p := range pods {
		t.Run(p.name, func(t *testing.T) {
			dump := parts.Fetch(t, w.pilotd.Address(), kind, p.workload(), extensions)
			var names []string
			for _, l := range dump.Listeners {
				names = append(names, l.Name)
			}
			t.Logf("%d clusters, listeners %s, %d routes", len(dump.Clusters), strings.Join(names, " "),
				len(dump.Routes))
			if len(dump.Clusters) == 0 || len(dump.Listeners) == 0 {
				t.Fatal("an empty dump proves nothing")
			}
			config, err := dump.Static()
			if err != nil {
				t.Fatal(err)
			}
			if err := parts.Validate(t, config); err != nil {
				t.Error(err)
			}
		})
	}
}

// extensions asks an Envoy of the test what it is built with.
func (w *world) extensions(t *testing.T) []*corepb.Extension {
	t.Helper()
	p := pod{"any", "shop", "10.244.8.1", "app: any"}
	e := parts.StartEnvoy(t, w.network.Pod(t, p.ip), parts.EnvoySpec{
		Kind: parts.Gateway, Protocol: parts.Delta, Workload: p.workload(), XDS: w.pilotd.Address(), Secrets: w.secrets,
	})
	var extensions []*corepb.Extension
	parts.Eventually(t, "Envoy says its extensions", func() (err error) {
		extensions, err = e.Extensions()
		return err
	})
	return extensions
}
