package e2e_test

import (
	"errors"
	"fmt"
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
