package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestPeerAuthentication has an Envoy on both sides and a policy for the server: its port is for mutual TLS alone, but
// one that it opens to plain text, one to both, whether a service declares them or not.
func TestPeerAuthentication(t *testing.T) {
	w := newWorld(t, inDirectory, baseMesh()+securePod().yaml()+
		service("shop/secure", secureVIP, "app: secure",
			"{name: http, port: 80, targetPort: 8080}, {name: http-plain, port: 81, targetPort: 8081}")+
		slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}, {name: http-plain, port: 8081, protocol: TCP}",
			securePod())+`
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: secure, namespace: shop}
spec:
  selector: {matchLabels: {app: secure}}
  mtls: {mode: STRICT}
  portLevelMtls: {8081: {mode: DISABLE}, 8082: {mode: PERMISSIVE}}
`)
	client, envoys := w.securePair(t, parts.Delta, map[string]string{"8080": "secure:8080", "8081": "secure:8081",
		"8082": "secure:8082", "8083": "secure:8083"})

	for port, mutual := range map[string]bool{"80": true, "81": false} {
		parts.Eventually(t, "a client with an Envoy is answered at port "+port, func() error {
			a, err := parts.Ask(client.Client(), "http://"+secureVIP+":"+port+"/", secureHost+":"+port)
			if err != nil {
				return err
			}
			if cert := a.Header.Get("x-echo-header-x-forwarded-client-cert"); a.Name != "secure:80"+port ||
				strings.Contains(cert, "URI=spiffe://") != mutual {
				return fmt.Errorf("answer %d %q, client certificate %q", a.Status, a.Name, cert)
			}
			return nil
		})
	}
	plain := w.network.Pod(t, outsider().ip).Client()
	ask := func(port string) (parts.Answer, error) {
		return parts.Ask(plain, "http://"+securePod().ip+":"+port+"/", secureHost)
	}
	for _, port := range []string{"8081", "8082"} {
		parts.Eventually(t, "a client without an Envoy is answered at port "+port, func() error {
			a, err := ask(port)
			if err == nil && a.Name != "secure:"+port {
				err = fmt.Errorf("answer %d %q", a.Status, a.Name)
			}
			return err
		})
	}
	for _, port := range []string{"8080", "8083"} {
		if a, err := ask(port); err == nil {
			t.Errorf("a client without an Envoy is answered at port %s: %v", port, a)
		}
	}
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}
