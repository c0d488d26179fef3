package e2e_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

const (
	secureVIP  = "10.96.1.4"
	secureHost = "secure.shop.svc.cluster.local"
)

func securePod() pod {
	return pod{"secure", "shop", "10.244.4.1", "app: secure, security.istio.io/tlsMode: istio"}
}

// TestMutualTLS has an Envoy on both sides. Nobody configured anything: between the two
// the connection is mutual TLS, and whoever has no Envoy is still answered.
func TestMutualTLS(t *testing.T) {
	w := newWorld(t, inDirectory, baseMesh()+securePod().yaml()+
		service("shop/secure", secureVIP, "app: secure", "{name: http, port: 80, targetPort: 8080}")+
		slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}", securePod()))
	for _, protocol := range []parts.Protocol{parts.Delta, parts.SotW} {
		t.Run(string(protocol), func(t *testing.T) { mutualTLS(t, w, protocol) })
	}
}

func mutualTLS(t *testing.T, w *world, protocol parts.Protocol) {
	client, envoys := w.securePair(t, protocol, map[string]string{"8080": "secure"})

	const identity = "URI=spiffe://cluster.local/ns/shop/sa/default"
	parts.Eventually(t, "the server's Envoy sees the client's certificate", func() error {
		a, err := parts.Ask(client.Client(), "http://"+secureVIP+":80/", secureHost)
		if err != nil {
			return err
		}
		if cert := a.Header.Get("x-echo-header-x-forwarded-client-cert"); a.Name != "secure" ||
			!strings.Contains(cert, identity) {
			return fmt.Errorf("answer %d %q, client certificate %q", a.Status, a.Name, cert)
		}
		return nil
	})
	plain := w.network.Pod(t, outsider().ip).Client()
	parts.Eventually(t, "a client without an Envoy is answered in plaintext", func() error {
		a, err := parts.Ask(plain, "http://"+securePod().ip+":8080/", secureHost)
		if err == nil && (a.Name != "secure" || a.Header.Get("x-echo-header-x-forwarded-client-cert") != "") {
			err = errors.New(fmt.Sprint(a))
		}
		return err
	})
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}

// TestIngressTLS has a Sidecar object that asks for TLS with files at a port. While the mesh's own TLS is switched off
// there, the port speaks that TLS and nothing else; while it takes whoever comes, the Sidecar's TLS is none.
func TestIngressTLS(t *testing.T) {
	const mode = `
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: secure, namespace: shop}
spec: {selector: {matchLabels: {app: secure}}, mtls: {mode: %s}}
`
	w := newWorld(t, inDirectory, baseMesh()+securePod().yaml()+`
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: secure, namespace: shop}
spec:
  workloadSelector: {labels: {app: secure}}
  ingress:
  - port: {number: 8443, protocol: HTTPS, name: https}
    defaultEndpoint: 127.0.0.1:8080
    tls: {mode: SIMPLE, serverCertificate: /etc/secure/tls.crt, privateKey: /etc/secure/tls.key}
`+fmt.Sprintf(mode, "DISABLE"))
	_, envoys := w.securePair(t, parts.Delta, map[string]string{"8080": "secure"})

	plain := w.network.Pod(t, outsider().ip).Client()
	secure := w.network.Pod(t, outsider().ip).Client()
	// The files have the workload's certificate, which is for no host's name.
	secure.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	address := "://" + securePod().ip + ":8443/"
	answered := func(what string, client *http.Client, url string) {
		t.Helper()
		parts.Eventually(t, what, func() error {
			a, err := parts.Ask(client, url, secureHost)
			if err == nil && a.Name != "secure" {
				err = fmt.Errorf("answer %d %q", a.Status, a.Name)
			}
			return err
		})
	}
	answered("a client with TLS of its own is answered", secure, "https"+address)
	if a, err := parts.Ask(plain, "http"+address, secureHost); err == nil {
		t.Errorf("a client in plain text is answered: %v", a)
	}

	w.objects.Apply(fmt.Sprintf(mode, "PERMISSIVE"))
	answered("a client in plain text is answered", plain, "http"+address)
	if a, err := parts.Ask(secure, "https"+address, secureHost); err == nil && a.Name == "secure" {
		t.Errorf("a client with TLS of its own is answered still: %v", a)
	}
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}
