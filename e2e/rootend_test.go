package e2e_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestRootNearItsEnd has the root of istio-ca-secret come near its end while nobody leads who could renew it; then a
// replica leads, renews it and dies, and another one goes on. Two sidecars trust both roots and lose no request.
func TestRootNearItsEnd(t *testing.T) {
	old := newSignerUntil(t, nil, "made by hand", time.Now().Add(2*time.Hour))
	const lease = `
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: pilotd-leader, namespace: istio-system}
spec: {holderIdentity: another, leaseDurationSeconds: 600, renewTime: "%s"}
`
	held := fmt.Sprintf(lease, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	w := newAgentsWithoutRoots(t, secureService()+old.secret(t, "istio-ca-secret", old)+held+oftenConnected)
	w.roots = old.pem() // as long as nobody leads it is in no namespace
	server, inbound := w.start(securePod(), parts.Sidecar, "SECRET_TTL=20s")
	parts.StartEcho(t, server, ":8080", "secure")
	client, outbound := w.start(clientDelta(), parts.Sidecar, "SECRET_TTL=20s")
	agents := []*parts.Agent{inbound, outbound}
	for _, a := range agents {
		a.AwaitReady()
	}
	parts.Eventually(t, "a request is answered over mutual TLS", func() error { return asked(client.Client()) })
	load := startLoad(t, client)

	w.objects.Delete(held) // pilotd leads
	roots := w.cluster.Roots("shop")
	parts.Eventually(t, "the root is renewed, and both are trusted", func() error {
		if roots = w.cluster.Roots("shop"); strings.Count(roots, "BEGIN") != 2 || !strings.HasSuffix(roots, old.pem()) {
			return errors.New("trusted are " + roots)
		}
		return nil
	})
	w.pilotd.Kill() // with the Lease
	w.pilotd.Start()
	block, _ := pem.Decode([]byte(roots))
	renewed, err := x509.ParseCertificate(block.Bytes)
	if err != nil || time.Until(renewed.NotAfter) < 24*time.Hour {
		t.Fatal(renewed, err)
	}
	want := []string{renewed.SerialNumber.Text(16), old.cert.SerialNumber.Text(16)}
	for _, a := range agents { // the new root comes with a certificate that it has signed
		parts.Eventually(t, "Envoy trusts both roots", func() error {
			h, err := holdingsOf(a)
			for _, serial := range want {
				if !slices.Contains(h.trusted, serial) {
					err = errors.Join(err, fmt.Errorf("trusted are %v, not %s", h.trusted, serial))
				}
			}
			return err
		})
	}
	for range 100 {
		if err := asked(client.Client()); err != nil {
			t.Error(err)
		}
	}
	load.stop()
	if n := load.failed.Load(); n > 0 {
		t.Errorf("%d requests failed: %v", n, *load.last.Load())
	}
	if n := load.answered.Load(); n < 1000 {
		t.Errorf("there were %d requests", n)
	}
	if after := w.cluster.Roots("shop"); after != roots {
		t.Error("the next replica has renewed it again: " + after)
	}
}
