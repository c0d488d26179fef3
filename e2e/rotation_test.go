package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
)

// signer is a root, or what stands below one.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newSigner makes one below another; below nobody it is a root.
func newSigner(t *testing.T, above *signer, name string) *signer {
	t.Helper()
	return newSignerUntil(t, above, name, time.Now().Add(24*time.Hour))
}

// newSignerUntil makes one that is good until then, and has been for a day.
func newSignerUntil(t *testing.T, above *signer, name string, until time.Time) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{key: key, cert: &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	if above == nil {
		above = s
	}
	der, err := x509.CreateCertificate(rand.Reader, s.cert, above.cert, &key.PublicKey, above.key)
	if err != nil {
		t.Fatal(err)
	}
	if s.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signer) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw}))
}

// plugged is the Secret of an authority below a root, with all that are trusted.
func (s *signer) plugged(t *testing.T, roots ...*signer) string {
	t.Helper()
	return s.secret(t, "cacerts", roots...)
}

// secret is a Secret with an authority.
func (s *signer) secret(t *testing.T, name string, roots ...*signer) string {
	t.Helper()
	key, err := x509.MarshalECPrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := ""
	for _, r := range roots {
		trusted += r.pem()
	}
	data, err := json.Marshal(map[string]string{"ca-cert.pem": s.pem(), "cert-chain.pem": s.pem(),
		"root-cert.pem": trusted, "ca-key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}))})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: istio-system}, stringData: %s}
`, name, data)
}

// holdings are the certificates that an Envoy has, by serial number: its own, and those of whom it trusts.
type holdings struct{ own, trusted []string }

func holdingsOf(a *parts.Agent) (h holdings, err error) {
	page, err := a.Request("GET", "certs")
	if err != nil {
		return h, err
	}
	type cert struct {
		Serial string `json:"serial_number"`
	}
	var certs struct {
		Certificates []struct {
			Trusted []cert `json:"ca_cert"`
			Chain   []cert `json:"cert_chain"`
		}
	}
	if err := json.Unmarshal([]byte(page), &certs); err != nil {
		return h, err
	}
	for _, c := range certs.Certificates {
		for _, one := range c.Trusted {
			h.trusted = append(h.trusted, strings.TrimLeft(one.Serial, "0"))
		}
		for _, one := range c.Chain {
			h.own = append(h.own, strings.TrimLeft(one.Serial, "0"))
		}
	}
	return h, nil
}

// renew waits until the Envoys of agents trust whom they should, and have certificates that were asked for after that.
func renew(t *testing.T, agents []*parts.Agent, what string, trusts func(trusted []string) error) {
	t.Helper()
	renewed, own := make([]int, len(agents)), make([]string, len(agents))
	parts.Eventually(t, what, func() (missing error) {
		for i, a := range agents {
			h, err := holdingsOf(a)
			if err == nil {
				err = trusts(h.trusted)
			}
			if slices.Sort(h.own); err == nil && len(h.own) > 0 && h.own[0] != own[i] {
				own[i], renewed[i] = h.own[0], renewed[i]+1
			}
			if err == nil && renewed[i] < 3 { // what it had, one that may have been under way, and one of this step
				err = fmt.Errorf("%d certificates so far", renewed[i])
			}
			if err != nil {
				missing = fmt.Errorf("%s: agent %d: %w", what, i, err)
			}
		}
		return missing
	})
}

// oftenConnected has sidecars connect anew to the service again and again.
const oftenConnected = `
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: secure, namespace: shop}
spec:
  host: ` + secureHost + `
  trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 10}}}
`

// TestRotation has two sidecars with certificates of pilotd's own authority talk without a pause, over connections that
// are made anew all the time, while what signs is replaced, then the root: not one request fails. Certificates live for
// seconds, so that each step is complete soon.
func TestRotation(t *testing.T) {
	before, after := newSigner(t, nil, "before"), newSigner(t, nil, "after")
	first, second, third := newSigner(t, before, "first"), newSigner(t, before, "second"), newSigner(t, after, "third")
	w := newAgents(t, secureService()+first.plugged(t, before)+oftenConnected)
	server, inbound := w.start(securePod(), parts.Sidecar, "SECRET_TTL=8s")
	parts.StartEcho(t, server, ":8080", "secure")
	client, outbound := w.start(clientDelta(), parts.Sidecar, "SECRET_TTL=8s")
	agents := []*parts.Agent{inbound, outbound}
	for _, a := range agents {
		a.AwaitReady()
	}
	parts.Eventually(t, "a request is answered over mutual TLS", func() error { return asked(client.Client()) })

	load := startLoad(t, client)
	for _, step := range []struct {
		what   string
		signs  *signer
		trusts []*signer
	}{
		{"what signs is replaced", second, []*signer{before}},
		{"the next root is trusted", second, []*signer{before, after}},
		{"the next root's signs", third, []*signer{before, after}},
		{"the root before is trusted no more", third, []*signer{after}},
	} {
		w.objects.Apply(step.signs.plugged(t, step.trusts...))
		renew(t, agents, step.what, func(trusted []string) error {
			for _, root := range []*signer{before, after} {
				serial := root.cert.SerialNumber.Text(16)
				if slices.Contains(trusted, serial) != slices.Contains(step.trusts, root) {
					return fmt.Errorf("trusted are %v, of which one is %s", trusted, serial)
				}
			}
			return nil
		})
		roots := ""
		for _, r := range step.trusts {
			roots += r.pem()
		}
		for _, a := range agents {
			a.WriteFile("var/run/secrets/istio/root-cert.pem", roots) // as the kubelet does from the ConfigMap
		}
	}
	load.stop()
	if n := load.failed.Load(); n > 0 {
		t.Errorf("%d requests failed: %v", n, *load.last.Load())
	}
	requests := load.answered.Load()
	if requests < 1000 {
		t.Errorf("there were %d requests", requests)
	}
	t.Logf("%d requests, %.0f a second", requests, float64(requests)/time.Since(load.begin).Seconds())
}
