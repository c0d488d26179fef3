package sds

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pilotd/pilotd/agent/cell"
	"github.com/pilotd/pilotd/agent/secret"
)

// An Envoy that asks before there is a certificate gets it when it is there, and each newer one; roots that stay are
// not sent again.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workload := &cell.Cell[secret.Material]{}
		client := serve(t, workload)
		streams := map[string]secretv3.SecretDiscoveryService_StreamSecretsClient{}
		for _, name := range []string{secret.Default, secret.RootCA} {
			streams[name] = open(t, client, name)
		}
		synctest.Wait()
		workload.Set(&secret.Material{Chain: []byte("c1"), Key: []byte("k1"), Roots: []byte("r")})
		if got := next(t, streams[secret.Default]); string(got.GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "k1" {
			t.Error(got)
		}
		if got := next(t, streams[secret.RootCA]); string(got.GetValidationContext().GetTrustedCa().GetInlineBytes()) != "r" {
			t.Error(got)
		}
		workload.Set(&secret.Material{Chain: []byte("c2"), Key: []byte("k2"), Roots: []byte("r")})
		if got := next(t, streams[secret.Default]); string(got.GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "k2" {
			t.Error(got)
		}
		synctest.Wait()
		workload.Set(&secret.Material{Chain: []byte("c3"), Key: []byte("k3"), Roots: []byte("r2")})
		got := next(t, streams[secret.RootCA])
		if string(got.GetValidationContext().GetTrustedCa().GetInlineBytes()) != "r2" {
			t.Error("roots that stay were sent again:", got)
		}
	})
}

// What is asked for must be one name, which may be the path of files; a name that is none ends the stream.
func TestBadNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, &cell.Cell[secret.Material]{})
		for _, names := range [][]string{nil, {"a", "b"}, {"file-cert:x"}} {
			s := open(t, client, names...)
			if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
				t.Error(names, err)
			}
		}
	})
}

func serve(t *testing.T, workload *cell.Cell[secret.Material]) secretv3.SecretDiscoveryServiceClient {
	l := bufconn.Listen(1 << 16)
	g := grpc.NewServer()
	New(&secret.Secrets{Workload: workload, Files: &secret.Files{Log: slog.New(slog.DiscardHandler)}},
		slog.New(slog.DiscardHandler)).Register(g)
	go func() { _ = g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); g.Stop() })
	return secretv3.NewSecretDiscoveryServiceClient(conn)
}

func open(t *testing.T, c secretv3.SecretDiscoveryServiceClient, names ...string,
) secretv3.SecretDiscoveryService_StreamSecretsClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	s, err := c.StreamSecrets(ctx)
	if err == nil {
		err = s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: Type, ResourceNames: names})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// next is the next secret, which is ACKed.
func next(t *testing.T, s secretv3.SecretDiscoveryService_StreamSecretsClient) *tlsv3.Secret {
	t.Helper()
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	out := &tlsv3.Secret{}
	if err := r.Resources[0].UnmarshalTo(out); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: Type, ResourceNames: []string{out.Name},
		VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce}); err != nil {
		t.Fatal(err)
	}
	return out
}
