package parts

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretpb "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// SDS serves a pod's secrets to its Envoy, as the agent does in a cluster: "default", the workload's certificate, and
// "ROOTCA", the roots that it trusts. Secrets in files ("file-cert:…", "file-root:…") have the same content, whatever
// their paths. Without them an Envoy would wait 15 s for the file, and start that much later.
type SDS struct {
	secretpb.UnimplementedSecretDiscoveryServiceServer
	// Immutable after StartSDS.
	Addr    net.Addr
	secrets map[string]*tlspb.Secret
}

// StartSDS serves on a loopback address of the pod. The workload's identity is that of
// the service account "default".
func StartSDS(t testing.TB, pod *testnet.Pod, a *Authority, w Workload) *SDS {
	t.Helper()
	chain, key, err := a.workload(w)
	if err != nil {
		t.Fatal(err)
	}
	l, err := pod.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &SDS{Addr: l.Addr(), secrets: make(map[string]*tlspb.Secret)}
	for _, secret := range []*tlspb.Secret{
		{Name: "default", Type: &tlspb.Secret_TlsCertificate{TlsCertificate: &tlspb.TlsCertificate{
			CertificateChain: inline(chain), PrivateKey: inline(key),
		}}},
		{Name: "ROOTCA", Type: &tlspb.Secret_ValidationContext{ValidationContext: &tlspb.CertificateValidationContext{
			TrustedCa: inline(a.Root),
		}}},
	} {
		s.secrets[secret.Name] = secret
	}
	server := grpc.NewServer()
	secretpb.RegisterSecretDiscoveryServiceServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return s
}

func inline(data []byte) *corepb.DataSource {
	return &corepb.DataSource{Specifier: &corepb.DataSource_InlineBytes{InlineBytes: data}}
}

// StreamSecrets answers the first request of a stream with the secrets that it names. Secrets never change.
func (s *SDS) StreamSecrets(stream secretpb.SecretDiscoveryService_StreamSecretsServer) error {
	for {
		req, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if req.VersionInfo != "" || req.ErrorDetail != nil {
			continue
		}
		resp := &discoverypb.DiscoveryResponse{VersionInfo: "1", Nonce: "1", TypeUrl: req.TypeUrl}
		for _, name := range req.ResourceNames {
			secret, err := s.secret(name)
			if err != nil {
				return err
			}
			resp.Resources = append(resp.Resources, secret)
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

// secret returns the secret of that name, packed.
func (s *SDS) secret(name string) (*anypb.Any, error) {
	of := name
	switch {
	case strings.HasPrefix(name, "file-cert:"):
		of = "default"
	case strings.HasPrefix(name, "file-root:"):
		of = "ROOTCA"
	}
	have, ok := s.secrets[of]
	if !ok {
		return nil, fmt.Errorf("no secret %q", name)
	}
	return anypb.New(&tlspb.Secret{Name: name, Type: have.Type})
}
