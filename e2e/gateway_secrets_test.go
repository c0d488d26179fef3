package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

func edgePod() pod { return pod{"edge", "shop", "10.244.5.1", "app: edge, istio: edge"} }

// edgeServer is one server of the gateway, on the port that all of them share.
func edgeServer(name, tls string) string {
	return fmt.Sprintf(`
  - port: {name: %[1]s, number: 8443, protocol: HTTPS}
    hosts: [%[1]s.example.com]
    tls: {%[2]s}`, name, tls)
}

// edge is a gateway whose servers have their certificates from Secrets. One has its workload's own, and a file with a
// list of revoked ones.
func edge(list string) string {
	return `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {istio: edge}
  servers:` + edgeServer("a", "mode: SIMPLE, credentialName: a") + edgeServer("b", "mode: SIMPLE, credentialName: b") +
		edgeServer("m", "mode: MUTUAL, credentialName: m") +
		edgeServer("s", "mode: MUTUAL, credentialName: s") +
		edgeServer("r", "mode: MUTUAL, credentialName: r") +
		edgeServer("f", "mode: ISTIO_MUTUAL, caCrl: "+list) +
		edgeServer("two", "mode: SIMPLE, credentialNames: [two-rsa, two-ecdsa]") +
		edgeServer("missing", "mode: SIMPLE, credentialName: nobody") +
		edgeServer("foreign", "mode: SIMPLE, credentialName: kubernetes://istio-system/foreign") + `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec:
  hosts: ["*.example.com"]
  gateways: [edge]
  http: [{route: [{destination: {host: web.shop.svc.cluster.local, port: {number: 80}}}]}]
`
}

// secretOf is a Secret of the keys and values.
func secretOf(name string, pairs ...any) string {
	namespace, base, ok := strings.Cut(name, "/")
	if !ok {
		namespace, base = "shop", name
	}
	var data strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&data, "%s: %s, ", pairs[i], base64.StdEncoding.EncodeToString(pairs[i+1].([]byte)))
	}
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, data: {%s}}\n", base,
		namespace, strings.TrimSuffix(data.String(), ", "))
}

// visit asks the gateway for a host over a connection of its own, and returns the server's certificate.
type visit struct {
	from *testnet.Pod
	pool *x509.CertPool
	host string
	own  []tls.Certificate
	// unverified takes any certificate of the server.
	unverified bool
}

func (v visit) ask() (*x509.Certificate, error) {
	client := v.client()
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + v.host + ".example.com:8443/")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return resp.TLS.PeerCertificates[0], nil
}

// client dials the gateway, whatever the name.
func (v visit) client() *http.Client {
	config := &tls.Config{RootCAs: v.pool, Certificates: v.own, InsecureSkipVerify: v.unverified}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return v.from.DialContext(ctx, network, edgePod().ip+":8443")
		}}}
}

// TestGatewaySecrets has a gateway ask pilotd for the certificates of its servers, over mutual TLS and both protocols.
func TestGatewaySecrets(t *testing.T) {
	for _, protocol := range []parts.Protocol{parts.Delta, parts.SotW} {
		t.Run(string(protocol), func(t *testing.T) { gatewaySecrets(t, protocol) })
	}
}

func gatewaySecrets(t *testing.T, protocol parts.Protocol) {
	own, clients, workloads := parts.NewAuthority(t), parts.NewAuthority(t), parts.NewAuthority(t)
	list := filepath.Join(t.TempDir(), "revoked.pem")
	revoked := newRevocation(t, clients)
	byFile := newRevocation(t, workloads)
	if err := os.WriteFile(list, byFile.list, 0o600); err != nil {
		t.Fatal(err)
	}
	certificate := func(name string) (chain, key []byte) { return own.Host(t, time.Time{}, name+".example.com") }
	mesh := baseMesh() + edgePod().yaml() + edge(list)
	for _, name := range []string{"a", "b"} {
		chain, key := certificate(name)
		mesh += secretOf(name, "tls.crt", chain, "tls.key", key)
	}
	chain, key := certificate("m")
	mesh += secretOf("m", "cert", chain, "key", key, "cacert", clients.Root)
	chain, key = certificate("s")
	mesh += secretOf("s", "tls.crt", chain, "tls.key", key) + secretOf("s-cacert", "ca.crt", clients.Root)
	rChain, rKey := certificate("r")
	staple := own.Staple(t, rChain, ocsp.Good, time.Now().Add(time.Hour))
	withList := func(list []byte) string {
		return secretOf("r", "tls.crt", rChain, "tls.key", rKey, "tls.ocsp-staple", staple, "ca.crt", clients.Root,
			"ca.crl", list)
	}
	mesh += withList(revoked.list)
	chain, key = certificate("two")
	mesh += secretOf("two-ecdsa", "tls.crt", chain, "tls.key", key)
	chain, key = own.RSAHost(t, "two.example.com")
	mesh += secretOf("two-rsa", "tls.crt", chain, "tls.key", key)
	chain, key = certificate("foreign")
	mesh += secretOf("istio-system/foreign", "tls.crt", chain, "tls.key", key)

	w := &world{t: t, network: testnet.New(t), secrets: workloads, objects: parts.NewDirectory(t)}
	w.objects.Apply(mesh)
	sources := w.objects.Sources()
	sources.Flags = w.secrets.Serve(t)
	w.pilotd = parts.StartPilotd(t, sources)
	w.backends()
	gateway := parts.StartEnvoy(t, w.network.Pod(t, edgePod().ip), parts.EnvoySpec{Kind: parts.Gateway, Secure: true,
		Protocol: protocol, Workload: edgePod().workload(), XDS: w.pilotd.SecureAddress(), Secrets: w.secrets})
	gateway.AwaitReady()

	v := visit{from: w.network.Pod(t, outsider().ip), pool: x509.NewCertPool()}
	v.pool.AppendCertsFromPEM(own.Root)
	served(t, gateway, v)
	mutual(t, v, clients)
	refused(t, w, v)
	byFile.obeyed(t, v, "f")
	revoked.obeyed(t, v, "r")
	stapled(t, v, staple)
	w.brokenList(v, withList)
	rotation(t, w, v, own)
	if err := gateway.NothingRefused(); err != nil {
		t.Error(err)
	}
}

// served: each server has its own certificate, or both of its own.
func served(t *testing.T, gateway *parts.Envoy, v visit) {
	for _, host := range []string{"a", "b", "two"} {
		v.host = host
		parts.Eventually(t, host+" is served", func() error {
			c, err := v.ask()
			if err == nil && c.VerifyHostname(host+".example.com") != nil {
				err = fmt.Errorf("the certificate is for %v", c.DNSNames)
			}
			return err
		})
	}
	const loaded = `two-(rsa|ecdsa)\.expiration_unix_time_seconds$`
	if stats, err := gateway.Stats(loaded); err != nil || len(stats) != 2 {
		t.Errorf("of two certificates of one server the gateway has %v, %v", stats, err)
	}
}

// mutual: whoever has no certificate of the authority that the Secret names is refused.
func mutual(t *testing.T, v visit, clients *parts.Authority) {
	good, err := tls.X509KeyPair(clients.Host(t, time.Time{}, "client"))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := tls.X509KeyPair(parts.NewAuthority(t).Host(t, time.Time{}, "client"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v.host = range []string{"m", "s"} {
		v.own = []tls.Certificate{good}
		parts.Eventually(t, v.host+" takes a client's certificate", func() error { _, err := v.ask(); return err })
		v.own = nil
		if _, err := v.ask(); err == nil {
			t.Errorf("%s takes a client without a certificate", v.host)
		}
		v.own = []tls.Certificate{bad}
		if _, err := v.ask(); err == nil {
			t.Errorf("%s takes a certificate of somebody else", v.host)
		}
	}
}

// refused: a Secret that is not there, or is of another namespace, takes down its own server alone.
func refused(t *testing.T, w *world, v visit) {
	for _, v.host = range []string{"missing", "foreign"} {
		if _, err := v.ask(); err == nil {
			t.Errorf("%s is served", v.host)
		}
	}
	v.host = "a"
	if _, err := v.ask(); err != nil {
		t.Error(err)
	}
}

// revocation is an authority's list of revoked certificates, with one that is on it and one that is not.
type revocation struct {
	list      []byte
	good, bad tls.Certificate
}

func newRevocation(t *testing.T, a *parts.Authority) revocation {
	t.Helper()
	chain, key := a.Host(t, time.Time{}, "client")
	bad, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	good, err := tls.X509KeyPair(a.Host(t, time.Time{}, "client"))
	if err != nil {
		t.Fatal(err)
	}
	return revocation{list: a.Revoke(t, time.Now().Add(time.Hour), chain), good: good, bad: bad}
}

// obeyed: a server takes a client whose certificate is not on the list, and refuses the other.
func (r revocation) obeyed(t *testing.T, v visit, host string) {
	t.Helper()
	v.host, v.own, v.unverified = host, []tls.Certificate{r.good}, true
	parts.Eventually(t, host+" takes a client's certificate", func() error { _, err := v.ask(); return err })
	v.own = []tls.Certificate{r.bad}
	if _, err := v.ask(); err == nil {
		t.Errorf("%s takes a certificate that is revoked", host)
	}
}

// stapled: the server sends what an authority says of its certificate.
func stapled(t *testing.T, v visit, staple []byte) {
	v.host = "r"
	c, err := v.from.DialContext(t.Context(), "tcp", edgePod().ip+":8443")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := tls.Client(c, &tls.Config{RootCAs: v.pool, ServerName: "r.example.com"})
	if err := server.HandshakeContext(t.Context()); err != nil || !bytes.Equal(server.OCSPResponse(), staple) {
		t.Errorf("the server sends an OCSP response of %d bytes, %v; want the Secret's, of %d", len(server.OCSPResponse()),
			err, len(staple))
	}
}

// brokenList: a list of revoked certificates that cannot be read is told of the Gateway, and the server takes nobody
// whom it has refused before, until the list is good again.
func (w *world) brokenList(v visit, withList func([]byte) string) {
	report := func() (string, error) { return w.pilotd.Debug("/debug/rejectionsz") }
	const reason = "Secret shop/r: ca.crl: want a list of revoked certificates"
	w.objects.Apply(withList([]byte("none")))
	parts.Eventually(w.t, "the broken list is reported", func() error {
		page, err := report()
		if err == nil && !strings.Contains(page, reason) {
			err = fmt.Errorf("%.2000s", page)
		}
		return err
	})
	v.host = "a"
	if _, err := v.ask(); err != nil {
		w.t.Error("beside a broken list of another server:", err)
	}
}

// rotation: a new certificate reaches connections that are made from then on, and drops none that is there.
func rotation(t *testing.T, w *world, v visit, own *parts.Authority) {
	v.host = "a"
	standing := v.client()
	defer standing.CloseIdleConnections()
	var asked atomic.Int64
	parts.Throughout(t, "requests over standing and new connections", func() error {
		for range 20 {
			resp, err := standing.Get("https://a.example.com:8443/")
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return errors.New(resp.Status)
			}
			if _, err := v.ask(); err != nil {
				return err
			}
			asked.Add(2)
		}
		return nil
	}, func() {
		before := int64(0)
		for range 5 {
			chain, key := own.Host(t, time.Time{}, "a.example.com")
			next, err := tls.X509KeyPair(chain, key)
			if err != nil {
				t.Fatal(err)
			}
			w.objects.Apply(secretOf("a", "tls.crt", chain, "tls.key", key))
			parts.Eventually(t, "the new certificate is served", func() error {
				c, err := v.ask()
				if err == nil && !c.Equal(next.Leaf) {
					err = errors.New("the old one is")
				}
				return err
			})
			parts.Eventually(t, "requests go on", func() error {
				if n := asked.Load(); n > before {
					before = n
					return nil
				}
				return errors.New("none since")
			})
		}
	})
	t.Logf("%d requests during 5 rotations", asked.Load())
}
