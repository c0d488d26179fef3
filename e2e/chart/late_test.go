package chart_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// TestAPIServerThatComesLater starts pilotd while its API server cannot be reached: it runs, says what it waits for,
// and is ready once the server is there.
func TestAPIServerThatComesLater(t *testing.T) {
	network := testnet.New(t)
	api := parts.StartAPIServer(t)
	parts.NewBareCluster(t, api).Apply(`
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Service
metadata: {name: kept, namespace: default}
spec: {ports: [{port: 80}]}
`)
	config, err := clientcmd.LoadFromFile(api.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	const door = testnet.Host + ":16443"
	var server *url.URL
	for _, c := range config.Clusters {
		if server, err = url.Parse(c.Server); err != nil {
			t.Fatal(err)
		}
		c.Server = "https://" + door
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	pilotd := parts.StartPilotd(t, parts.Sources{Kubeconfig: file, Unready: true,
		Flags: []string{"--secureGRPCAddr=" + testnet.Host + ":15012"}})
	parts.Eventually(t, "pilotd says what it waits for", func() error {
		if err := pilotd.Alive(); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(pilotd.Ready())
		if !strings.Contains(text, "kube: waiting for ") || !strings.Contains(text, "dial tcp "+door) {
			return fmt.Errorf("it says %s", text)
		}
		return nil
	})
	network.Forward(t, door, server.Host)
	pilotd.AwaitReady()
	page, err := pilotd.Debug("/debug/registryz")
	if err != nil || !strings.Contains(page, "kept.default.svc.cluster.local") {
		t.Errorf("%v\n%.500s", err, page)
	}
}
