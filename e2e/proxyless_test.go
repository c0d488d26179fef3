package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/identity"
)

// proxyless makes gRPC servers and clients of a mesh that have no proxy, each with a certificate of its service account
// in files, as an agent leaves them.
type proxyless struct {
	t         *testing.T
	xds       string
	authority *ca.Authority
}

func newProxyless(t *testing.T, w *world) *proxyless {
	m, err := ca.SelfSigned(ca.Root{Organization: "cluster.local", Life: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ca.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return &proxyless{t, w.pilotd.Address(), a}
}

// bootstrap returns what gRPC reads for a pod of a service account.
func (p *proxyless) bootstrap(of pod, account string) []byte {
	p.t.Helper()
	dir := p.t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	who, err := identity.New("cluster.local", of.namespace, account)
	if err != nil {
		p.t.Fatal(err)
	}
	chain, err := p.authority.Sign(ca.Request{Key: key.Public(), Who: who, Life: time.Hour}, time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	last := len(chain) - 1
	for name, text := range map[string]string{"chain": strings.Join(chain[:last], ""), "roots": chain[last],
		"key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	type tree = map[string]any
	labels := tree{}
	for name, value := range of.workload().Labels {
		labels[name] = value
	}
	text, err := json.Marshal(tree{
		"xds_servers": []tree{{"server_uri": p.xds, "channel_creds": []tree{{"type": "insecure"}},
			"server_features": []string{"xds_v3"}}},
		"node": tree{"id": fmt.Sprintf("sidecar~%s~%s.%s~%[3]s.svc.cluster.local", of.ip, of.name, of.namespace),
			"metadata": tree{"GENERATOR": "grpc", "NAMESPACE": of.namespace, "CLUSTER_ID": "Kubernetes", "LABELS": labels,
				"INSTANCE_IPS": of.ip, "SERVICE_ACCOUNT": account}},
		"certificate_providers": tree{"default": tree{"plugin_name": "file_watcher", "config": tree{
			"certificate_file": filepath.Join(dir, "chain"), "private_key_file": filepath.Join(dir, "key"),
			"ca_certificate_file": filepath.Join(dir, "roots"), "refresh_interval": "600s"}}},
		"server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// xdsServer is gRPC's test service.
type xdsServer struct {
	testpb.UnimplementedTestServiceServer
}

func (xdsServer) UnaryCall(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{}, nil
}

func (xdsServer) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

// serve starts a server whose settings come from pilotd.
func (p *proxyless) serve(of pod, account string) {
	p.t.Helper()
	creds, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		p.t.Fatal(err)
	}
	server, err := xds.NewGRPCServer(grpc.Creds(creds), xds.BootstrapContentsForTesting(p.bootstrap(of, account)))
	if err != nil {
		p.t.Fatal(err)
	}
	testpb.RegisterTestServiceServer(server, xdsServer{})
	l, err := net.Listen("tcp", of.ip+":7443")
	if err != nil {
		p.t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	p.t.Cleanup(server.Stop)
}

// client returns a client whose settings come from pilotd.
func (p *proxyless) client(of pod, account string) testpb.TestServiceClient {
	p.t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(p.bootstrap(of, account))
	if err != nil {
		p.t.Fatal(err)
	}
	creds, err := xdscreds.NewClientCredentials(xdscreds.ClientOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.dial("xds:///calls.shop.svc.cluster.local:80", creds, grpc.WithResolvers(resolver))
}

func (p *proxyless) dial(target string, creds credentials.TransportCredentials,
	more ...grpc.DialOption) testpb.TestServiceClient {
	p.t.Helper()
	conn, err := grpc.NewClient(target, append(more, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return testpb.NewTestServiceClient(conn)
}

// TestProxylessAuthorization has gRPC servers and clients without proxies: they speak mutual TLS with certificates of
// pilotd's authority, and the server's policies decide who may call what.
func TestProxylessAuthorization(t *testing.T) {
	calls := pod{"calls", "shop", testnet.Host, "app: calls, security.istio.io/tlsMode: istio"}
	policy := func(name, spec string) string {
		return fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: %s, namespace: shop}
spec: {selector: {matchLabels: {app: calls}}, %s}
`, name, spec)
	}
	w := newWorld(t, inDirectory, baseMesh()+calls.yaml()+
		service("shop/calls", "10.96.1.7", "app: calls", "{name: grpc, port: 80, targetPort: 7443}")+
		slice("calls", "shop", "{name: grpc, port: 7443, protocol: TCP}", calls)+`
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: calls, namespace: shop}
spec: {host: calls.shop.svc.cluster.local, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
`+policy("allow", `rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/good]}}],
    to: [{operation: {paths: ["/grpc.testing.TestService/*"]}}]}]`)+
		policy("deny", `action: DENY, rules: [{to: [{operation: {paths: [/grpc.testing.TestService/EmptyCall]}}]}]`))
	p := newProxyless(t, w)
	p.serve(calls, "default")
	call := func(c testpb.TestServiceClient, empty bool) codes.Code {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var err error
		if empty {
			_, err = c.EmptyCall(ctx, &testpb.Empty{})
		} else {
			_, err = c.UnaryCall(ctx, &testpb.SimpleRequest{})
		}
		return status.Code(err)
	}
	good := p.client(clientGRPC(), "good")
	parts.Eventually(t, "a call that is allowed", func() error {
		if got := call(good, false); got != codes.OK {
			return fmt.Errorf("answered %v", got)
		}
		return nil
	})
	for name, c := range map[string]struct {
		client testpb.TestServiceClient
		empty  bool
		want   codes.Code
	}{
		"a method that is denied":          {good, true, codes.PermissionDenied},
		"an account that is not allowed":   {p.client(clientGRPC(), "bad"), false, codes.PermissionDenied},
		"a client that has no certificate": {p.dial(calls.ip+":7443", insecure.NewCredentials()), false, codes.Unavailable},
	} {
		if got := call(c.client, c.empty); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	w.objects.Apply(policy("allow", `rules: [{from: [{source: {requestPrincipals: ["*"]}}]}]`))
	parts.Eventually(t, "what cannot be asked for allows nothing", func() error {
		if got := call(good, false); got != codes.PermissionDenied {
			return fmt.Errorf("answered %v", got)
		}
		return nil
	})
}
