package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// callerPod has a sidecar and exitPod is a gateway; the rules of origins select both.
func callerPod() pod { return pod{"caller", "shop", "10.244.6.1", "app: caller, begins: tls"} }
func exitPod() pod   { return pod{"exit", "shop", "10.244.6.2", "app: exit, begins: tls"} }

// origin is a host outside the mesh that wants TLS.
type origin struct {
	name, vip string
	port      int    // of the server: mutualPort wants a client's certificate
	tls       string // of the DestinationRule
	everybody bool   // the rule selects nobody in particular
}

const simplePort, mutualPort = 8443, 9443

func origins() []origin {
	return []origin{
		{"simple", "10.96.4.1", simplePort, "mode: SIMPLE, credentialName: roots", false},
		{"mutual", "10.96.4.2", mutualPort, "mode: MUTUAL, credentialName: own, subjectAltNames: [mutual.example.com]",
			false},
		{"beside", "10.96.4.3", mutualPort, "mode: MUTUAL, credentialName: beside", false},
		{"name", "10.96.4.4", simplePort, "mode: SIMPLE, credentialName: roots, subjectAltNames: [other.example.com]", false},
		{"stranger", "10.96.4.5", simplePort, "mode: SIMPLE, credentialName: stranger", false},
		{"revoked", "10.96.4.6", simplePort, "mode: SIMPLE, credentialName: list", false},
		{"missing", "10.96.4.7", mutualPort, "mode: MUTUAL, credentialName: nobody", false},
		{"foreign", "10.96.4.8", mutualPort, "mode: MUTUAL, credentialName: kubernetes://istio-system/own", false},
		{"wide", "10.96.4.9", simplePort, "mode: SIMPLE, credentialName: roots", true},
	}
}

func (o origin) host() string { return o.name + ".example.com" }

func (o origin) yaml() string {
	selector := "workloadSelector: {matchLabels: {begins: tls}}"
	if o.everybody {
		selector = ""
	}
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.example.com]
  addresses: [%[2]s]
  resolution: STATIC
  location: MESH_EXTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %[3]d}]
  endpoints: [{address: %[4]s}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[1]s, namespace: shop}
spec:
  host: %[1]s.example.com
  %[6]s
  trafficPolicy: {tls: {%[5]s}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.example.com]
  gateways: [exit]
  http: [{route: [{destination: {host: %[1]s.example.com, port: {number: 80}}}]}]
`, o.name, o.vip, o.port, webV1().ip, o.tls, selector)
}

// tlsServer answers each request on a connection of its own, with the number of the client's certificate.
type tlsServer struct {
	// Immutable after startTLSServer.
	clients *x509.CertPool

	mu sync.Mutex
	// Guarded by mu.
	own tls.Certificate
}

func startTLSServer(t *testing.T, pod *testnet.Pod, clients *parts.Authority) *tlsServer {
	t.Helper()
	s := &tlsServer{clients: x509.NewCertPool()}
	s.clients.AppendCertsFromPEM(clients.Root)
	for port, auth := range map[int]tls.ClientAuthType{simplePort: tls.NoClientCert,
		mutualPort: tls.RequireAndVerifyClientCert} {
		l, err := pod.Listen(fmt.Sprint(":", port))
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = server.Serve(tls.NewListener(l, s.config(auth))) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	return s
}

func (s *tlsServer) config(auth tls.ClientAuthType) *tls.Config {
	return &tls.Config{ClientCAs: s.clients, ClientAuth: auth, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return &s.own, nil
		}}
}

// be gives the server another certificate.
func (s *tlsServer) be(t *testing.T, chain, key []byte) {
	t.Helper()
	own, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = own
}

// ServeHTTP implements http.Handler.
func (s *tlsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	client := "nobody"
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		client = r.TLS.PeerCertificates[0].SerialNumber.String()
	}
	_, _ = io.WriteString(w, client)
}

// originating are a sidecar and a gateway that begin TLS on behalf of others, each with a client.
type originating struct {
	*world
	ask    map[string]func(o origin) (parts.Answer, error)
	server *tlsServer
	names  []string // that the server's certificate is for
}

// TestOriginationSecrets has a sidecar and a gateway begin TLS with the certificates and roots of Secrets that
// DestinationRules name, and rotates these.
func TestOriginationSecrets(t *testing.T) {
	servers, clients := parts.NewAuthority(t), parts.NewAuthority(t)
	w := &originating{world: &world{t: t, network: testnet.New(t), secrets: parts.NewAuthority(t),
		objects: parts.NewDirectory(t)}}
	mesh := baseMesh() + callerPod().yaml() + exitPod().yaml() + `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: exit, namespace: shop}
spec:
  selector: {app: exit}
  servers: [{port: {name: http, number: 8080, protocol: HTTP}, hosts: ["*.example.com"]}]
`
	for _, o := range origins() {
		mesh += o.yaml()
		w.names = append(w.names, o.host())
	}
	w.server = startTLSServer(t, w.network.Pod(t, webV1().ip), clients)
	serverChain, serverKey := servers.Host(t, time.Time{}, w.names...)
	w.server.be(t, serverChain, serverKey)
	chain, key := clients.Host(t, time.Time{}, "client")
	other, otherKey := clients.Host(t, time.Time{}, "client")
	mesh += secretOf("roots", "cacert", servers.Root) + secretOf("stranger", "cacert", clients.Root) +
		secretOf("own", "cert", chain, "key", key, "cacert", servers.Root) +
		secretOf("istio-system/own", "cert", chain, "key", key, "cacert", servers.Root) +
		secretOf("beside", "tls.crt", other, "tls.key", otherKey) + secretOf("beside-cacert", "ca.crt", servers.Root) +
		secretOf("list", "cacert", servers.Root, "crl", servers.Revoke(t, time.Now().Add(time.Hour), serverChain))
	w.objects.Apply(mesh)
	sources := w.objects.Sources()
	sources.Flags = w.secrets.Serve(t)
	w.pilotd = parts.StartPilotd(t, sources)
	envoys := w.begin()

	serial := func(chain []byte) string { return parts.Leaf(t, chain).SerialNumber.String() }
	for who := range w.ask {
		w.answers(who, "simple", "nobody")
		w.answers(who, "mutual", serial(chain))
		w.answers(who, "beside", serial(other))
		for _, name := range []string{"name", "stranger", "revoked", "missing", "foreign"} {
			if a, err := w.ask[who](w.origin(name)); err != nil || a.Status != http.StatusServiceUnavailable {
				t.Errorf("%s gets %d %q of %s, %v; want 503", who, a.Status, a.Body, name, err)
			}
		}
	}
	w.answers("gateway", "wide", "nobody")
	if a, err := w.ask["sidecar"](w.origin("wide")); err != nil || a.Status != http.StatusBadRequest {
		t.Errorf("a sidecar that no rule selects gets %d, %v; want 400, for it sends plain text", a.Status, err)
	}
	w.rotate(servers, clients)
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}

// begin starts both Envoys. (Over SotW nobody can be told that a Secret is not there, and each start waits for 15 s.)
func (w *originating) begin() []*parts.Envoy {
	w.t.Helper()
	spec := parts.EnvoySpec{Secure: true, Protocol: parts.Delta, XDS: w.pilotd.SecureAddress(), Secrets: w.secrets}
	spec.Kind, spec.Workload = parts.Sidecar, callerPod().workload()
	caller := w.network.Pod(w.t, callerPod().ip)
	sidecar := parts.StartEnvoy(w.t, caller, spec)
	spec.Kind, spec.Workload = parts.Gateway, exitPod().workload()
	gateway := parts.StartEnvoy(w.t, w.network.Pod(w.t, exitPod().ip), spec)
	sidecar.AwaitReady()
	gateway.AwaitReady()
	inside, outside := caller.Client(), w.network.Pod(w.t, outsider().ip).Client()
	w.ask = map[string]func(origin) (parts.Answer, error){
		"sidecar": func(o origin) (parts.Answer, error) { return parts.Ask(inside, "http://"+o.vip+":80/", o.host()) },
		"gateway": func(o origin) (parts.Answer, error) {
			return parts.Ask(outside, "http://"+exitPod().ip+":8080/", o.host())
		},
	}
	return []*parts.Envoy{sidecar, gateway}
}

func (w *originating) origin(name string) origin {
	w.t.Helper()
	for _, o := range origins() {
		if o.name == name {
			return o
		}
	}
	w.t.Fatal("no origin", name)
	return origin{}
}

// sees returns nil if the server knows the client as that.
func (w *originating) sees(who, name, client string) error {
	a, err := w.ask[who](w.origin(name))
	if err == nil && (a.Status != http.StatusOK || a.Body != client) {
		err = fmt.Errorf("%s gets %d %q of %s, want %q", who, a.Status, a.Body, name, client)
	}
	return err
}

func (w *originating) answers(who, name, client string) {
	w.t.Helper()
	parts.Eventually(w.t, who+" reaches "+name, func() error { return w.sees(who, name, client) })
}

// rotate gives the clients other certificates, and then the server one of another authority, which both are trusted
// meanwhile. No request fails.
func (w *originating) rotate(servers, clients *parts.Authority) {
	var asked atomic.Int64
	next := parts.NewAuthority(w.t)
	both := join(servers.Root, next.Root)
	parts.Throughout(w.t, "requests while Secrets change", func() error {
		for who := range w.ask {
			a, err := w.ask[who](w.origin("mutual"))
			if err == nil && a.Status != http.StatusOK {
				err = errors.New(who + ": " + a.Body)
			}
			if err != nil {
				return err
			}
			asked.Add(1)
		}
		return nil
	}, func() {
		for round := range 4 {
			chain, key := clients.Host(w.t, time.Time{}, "client")
			w.objects.Apply(secretOf("own", "cert", chain, "key", key, "cacert", both))
			for who := range w.ask {
				w.answers(who, "mutual", parts.Leaf(w.t, chain).SerialNumber.String())
			}
			before := asked.Load()
			parts.Eventually(w.t, "requests go on", func() error {
				if asked.Load() < before+20 {
					return errors.New("too few since")
				}
				return nil
			})
			if round == 1 { // both roots are there since a round
				of, own := next.Host(w.t, time.Time{}, w.names...)
				w.server.be(w.t, of, own)
			}
		}
	})
	w.t.Logf("%d requests", asked.Load())
}
