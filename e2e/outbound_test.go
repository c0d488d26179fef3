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

// externalPod returns a server that the mesh does not know.
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
		Kind: parts.Sidecar, Protocol: parts.Delta, Workload: client.workload(), XDS: w.pilotd.Address(),
		Secrets: w.secrets,
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

// TestDynamicDNS: under ALLOW_ANY_DYNAMIC_DNS a sidecar resolves the host of a request to an unknown server itself,
// whatever address the client called: at a port that the mesh serves over HTTP, and at one that it does not know. Bytes
// still go where they were sent, also where the server speaks first; and the next policy is in force at once.
func TestDynamicDNS(t *testing.T) {
	w := newWorld(t, func(t *testing.T) parts.Objects {
		return fromFile{Objects: parts.NewDirectory(t), policy: "ALLOW_ANY_DYNAMIC_DNS"}
	}, baseMesh()+weights(100, 0))
	w.backends()
	external := w.network.Pod(t, externalPod().ip)
	parts.StartEcho(t, external, ":80", "external")
	parts.StartEcho(t, external, ":8081", "external")
	parts.StartTCPEcho(t, external, ":7000", "external")
	client := clientDelta()
	app := w.network.Pod(t, client.ip)
	parts.StartEcho(t, app, "127.0.0.1:8090", "resolved")
	envoy := parts.StartEnvoy(t, app, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: parts.Delta, Workload: client.workload(), XDS: w.pilotd.Address(),
		Secrets: w.secrets,
	})
	envoy.AwaitReady()
	answers := func(url, host, name string) func() error {
		return func() error {
			a, err := parts.Ask(app.Client(), url, host)
			if err == nil && a.Name != name {
				err = fmt.Errorf("%s as %s: %d from %q, want %q", url, host, a.Status, a.Name, name)
			}
			return err
		}
	}
	for _, port := range []string{"80", "8081"} {
		url := "http://" + externalPod().ip + ":" + port + "/"
		parts.Eventually(t, "Envoy resolves the host of a request to port "+port,
			answers(url, "localhost:8090", "resolved"))
		parts.Eventually(t, "an address as a host is called", answers(url, externalPod().ip+":"+port, "external"))
	}
	parts.Eventually(t, "a service is itself", func() error {
		a, err := parts.Ask(app.Client(), "http://"+webVIP+":80/", "web.shop.svc.cluster.local")
		if err == nil && a.Name != "web-v1" {
			err = fmt.Errorf("%d from %q", a.Status, a.Name)
		}
		return err
	})
	tcpGreets(t, app)
	parts.Eventually(t, "an unknown server that speaks first greets", func() error {
		c, err := app.DialContext(t.Context(), "tcp", externalPod().ip+":7000")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = io.ReadFull(c, make([]byte, len("external")))
		return err
	})
	w.pilotd.SetMeshConfig(meshText("ALLOW_ANY"))
	parts.Eventually(t, "the address that was called is reached again", answers("http://"+externalPod().ip+":8081/",
		"localhost:8090", "external"))
	if err := envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
}
