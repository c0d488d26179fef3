package parts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	bootstrappb "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

func TestClusterTakesPodsWithStatusAndIstioObjects(t *testing.T) {
	testnet.New(t)
	c := parts.NewCluster(t, parts.StartAPIServer(t))
	c.Apply(`
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {serviceAccountName: default, nodeName: n1, containers: [{name: app, image: app}]}
status:
  phase: Running
  podIP: 10.244.1.1
  podIPs: [{ip: 10.244.1.1}]
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web]
  http: [{route: [{destination: {host: web}}]}]
`)
	c.Delete(`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}`)
}

func TestEchoAnswersWithItsName(t *testing.T) {
	network := testnet.New(t)
	client, server := network.Pod(t, "10.244.1.1"), network.Pod(t, "10.244.1.2")
	parts.StartEcho(t, server, ":8080", "web-v1")
	a, err := parts.Ask(client.Client(), "http://10.244.1.2:8080/path?q=1", "web.shop", "x-a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "web-v1" || a.Header.Get("x-echo-host") != "web.shop" || a.Header.Get("x-echo-path") != "/path?q=1" ||
		a.Header.Get("x-echo-header-x-a") != "b" {
		t.Errorf("answer %+v", a)
	}
}

// An Envoy without an xDS server starts and waits; its admin page says so.
func TestEnvoyWaitsForConfiguration(t *testing.T) {
	network := testnet.New(t)
	pod := network.Pod(t, "10.244.1.1")
	envoy := parts.StartEnvoy(t, pod, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: parts.Delta, XDS: testnet.Host + ":15010", Secrets: parts.NewAuthority(t),
		Workload: parts.Workload{Name: "web", Namespace: "shop", IP: "10.244.1.1",
			Labels: map[string]string{"app": "web"}},
	})
	parts.Eventually(t, "Envoy tries to connect", func() error {
		if err := envoy.Alive(); err != nil {
			t.Fatal(err)
		}
		stats, err := envoy.Stats("update_attempt$|update_failure$")
		if err != nil {
			return err
		}
		if stats["cluster_manager.cds.update_failure"] == 0 {
			return fmt.Errorf("stats %v", stats)
		}
		return nil
	})
	if err := envoy.NothingRefused(); err != nil {
		t.Error(err)
	}
	extensions, err := envoy.Extensions()
	if err != nil || len(extensions) < 100 {
		t.Errorf("extensions %d: %v", len(extensions), err)
	}
}

func TestValidateRefusesWhatEnvoyRefuses(t *testing.T) {
	if err := parts.Validate(t, &bootstrappb.Bootstrap{}); err != nil {
		t.Error(err)
	}
	bad, err := parts.Dump{Clusters: []*clusterpb.Cluster{{Name: ""}}}.Static()
	if err != nil {
		t.Fatal(err)
	}
	if err := parts.Validate(t, bad); err == nil || !strings.Contains(err.Error(), "Cluster") {
		t.Errorf("a cluster without a name: %v", err)
	}
}
