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
			t.Logf("%d clusters, listeners %s, %d routes", len(dump.Clusters), strings.Join(names, " "), len(dump.Routes))
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
