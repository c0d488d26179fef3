package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// externalPod is a server that the mesh does not know.
func externalPod() pod { return pod{"external", "", "10.244.9.2", ""} }

// meshSettings is a mesh configuration that a test changes while pilotd runs.
type meshSettings struct {
	name  string
	start func(t *testing.T, policy string) *world
	set   func(w *world, policy string)
}

func meshText(policy string) string { return "outboundTrafficPolicy: {mode: " + policy + "}\n" }

func meshConfigMap(policy string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: %q}
`, meshText(policy))
}

// fromFile has its settings in a file, and its objects in a directory.
type fromFile struct {
	parts.Objects
	policy string
}

func (f fromFile) Sources() parts.Sources {
	s := f.Objects.Sources()
	s.MeshConfig = meshText(f.policy)
	return s
}

// TestOutboundPolicy changes what may happen to requests that leave the mesh: in the
// ConfigMap of a cluster and in the file of --meshConfig. Neither takes a restart.
func TestOutboundPolicy(t *testing.T) {
	for _, settings := range []meshSettings{
		{
			name: "config map",
			start: func(t *testing.T, policy string) *world {
				return newWorld(t, inCluster, baseMesh()+weights(100, 0)+meshConfigMap(policy))
			},
			set: func(w *world, policy string) { w.objects.Apply(meshConfigMap(policy)) },
		},
		{
			name: "file",
			start: func(t *testing.T, policy string) *world {
				return newWorld(t, func(t *testing.T) parts.Objects {
					return fromFile{Objects: parts.NewDirectory(t), policy: policy}
				}, baseMesh()+weights(100, 0))
			},
			set: func(w *world, policy string) { w.pilotd.SetMeshConfig(meshText(policy)) },
		},
	} {
		t.Run(settings.name, func(t *testing.T) { outboundPolicy(t, settings) })
	}
}

func outboundPolicy(t *testing.T, settings meshSettings) {
	w := settings.start(t, "ALLOW_ANY")
	w.backends()
	external := w.network.Pod(t, externalPod().ip)
	parts.StartEcho(t, external, ":80", "external")
	parts.StartEcho(t, external, ":8081", "external")
	client := clientDelta()
	app := w.network.Pod(t, client.ip)
	envoy := parts.StartEnvoy(t, app, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: parts.Delta, Workload: client.workload(), XDS: w.pilotd.Address(), Secrets: w.secrets,
	})
	envoy.AwaitReady()

	urls := []string{"http://" + externalPod().ip + ":80/", "http://" + externalPod().ip + ":8081/"}
	outside := func() error {
		for _, url := range urls {
			a, err := parts.Ask(app.Client(), url, "outside.example.org")
			if err != nil {
				return err
			}
			if a.Name != "external" {
				return fmt.Errorf("%s: %d from %q", url, a.Status, a.Name)
			}
		}
		return nil
	}
	parts.Eventually(t, "an unknown server is reached", outside)
	tcpGreets(t, app)

	settings.set(w, "REGISTRY_ONLY")
	parts.Eventually(t, "an unknown server is out of reach", func() error {
		// A port that the mesh serves over HTTP answers for the mesh; another one hangs up.
		a, err := parts.Ask(app.Client(), urls[0], "outside.example.org")
		if err != nil {
			return err
		}
		if a.Status != http.StatusBadGateway {
			return fmt.Errorf("%s: %d from %q", urls[0], a.Status, a.Name)
		}
		if a, err := parts.Ask(app.Client(), urls[1], "outside.example.org"); err == nil {
			return fmt.Errorf("%s: %d from %q", urls[1], a.Status, a.Name)
		}
		return nil
	})
	tcpGreets(t, app)

	settings.set(w, "ALLOW_ANY")
	parts.Eventually(t, "an unknown server is reached again", outside)
	if err := envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
}

// tcpGreets talks to web's TCP port, where the server speaks first.
func tcpGreets(t *testing.T, app *testnet.Pod) {
	t.Helper()
	parts.Eventually(t, "the TCP service greets", func() error {
		c, err := app.DialContext(t.Context(), "tcp", webVIP+":9000")
		if err != nil {
			return err
		}
		defer c.Close()
		greeting := make([]byte, len("web-v"))
		if _, err := io.ReadFull(c, greeting); err != nil {
			return err
		}
		if string(greeting) != "web-v" {
			return errors.New("greeting " + string(greeting))
		}
		return nil
	})
}
