// Package sds serves the pod's secrets to its Envoy over a unix socket. Envoy opens one State-of-the-World stream for
// each name. A stream waits for a secret that does not exist yet, and sends a secret again when it changes.
package sds

import (
	"errors"
	"io"
	"log/slog"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/agent/secret"
	"github.com/pilotd/pilotd/xdstype"
)

// Type is the type URL of secrets.
const Type = xdstype.SecretURL

// Server serves secrets.
type Server struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer
	// Immutable after New.
	secrets *secret.Secrets
	log     *slog.Logger
}

// New returns a server of secrets.
func New(secrets *secret.Secrets, log *slog.Logger) *Server {
	return &Server{secrets: secrets, log: log}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(to *grpc.Server) { secretv3.RegisterSecretDiscoveryServiceServer(to, s) }

// StreamSecrets serves the secret that the first request of the stream names.
func (s *Server) StreamSecrets(stream secretv3.SecretDiscoveryService_StreamSecretsServer) error {
	first, err := stream.Recv()
	if err != nil {
		return ended(err)
	}
	if len(first.ResourceNames) != 1 {
		return status.Errorf(codes.InvalidArgument, "want one name for a stream, got %d", len(first.ResourceNames))
	}
	name := first.ResourceNames[0]
	acks := make(chan error, 1)
	go func() { acks <- s.readAnswers(stream, name) }()
	sent := ""
	for nonce := 1; ; {
		found, version, changed, err := s.secrets.Get(name)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if found != nil && version != sent {
			packed, err := anypb.New(found)
			if err != nil {
				return err
			}
			if err := stream.Send(&discoveryv3.DiscoveryResponse{TypeUrl: Type, VersionInfo: version,
				Nonce: strconv.Itoa(nonce), Resources: []*anypb.Any{packed},
				ControlPlane: &corev3.ControlPlane{Identifier: "pilot-agent"}}); err != nil {
				return err
			}
			sent, nonce = version, nonce+1
		}
		select {
		case <-changed:
		case err := <-acks:
			return err
		case <-stream.Context().Done():
			return nil
		}
	}
}

// readAnswers reads Envoy's ACKs and NACKs, until the stream ends.
func (s *Server) readAnswers(stream secretv3.SecretDiscoveryService_StreamSecretsServer, name string) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return ended(err)
		}
		if r.ErrorDetail != nil {
			s.log.Error("Envoy refuses a secret", "name", name, "error", r.ErrorDetail.Message)
		}
		if len(r.ResourceNames) != 1 || r.ResourceNames[0] != name {
			return status.Errorf(codes.InvalidArgument, "the stream is for %q, not for %q", name, r.ResourceNames)
		}
	}
}

// ended returns nil if the error is the regular end of a stream by its client.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
