package gen

import (
	"crypto/sha256"
	"encoding/hex"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// workloadSecret returns one of the two secrets that every workload's agent serves at the static cluster sds-grpc: its
// own certificate ("default") and the roots that it trusts ("ROOTCA"). Listeners and clusters wait for it without a
// limit.
func workloadSecret(name string) *tlspb.SdsSecretConfig {
	s := fileSecret(name)
	s.SdsConfig.InitialFetchTimeout = &durationpb.Duration{}
	return s
}

// fileSecret returns a secret that the agent reads from the files that its name names.
func fileSecret(name string) *tlspb.SdsSecretConfig {
	return &tlspb.SdsSecretConfig{Name: name, SdsConfig: &corepb.ConfigSource{
		ConfigSourceSpecifier: &corepb.ConfigSource_ApiConfigSource{ApiConfigSource: &corepb.ApiConfigSource{
			ApiType:                   corepb.ApiConfigSource_GRPC,
			TransportApiVersion:       corepb.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corepb.GrpcService{{TargetSpecifier: &corepb.GrpcService_EnvoyGrpc_{
				EnvoyGrpc: &corepb.GrpcService_EnvoyGrpc{ClusterName: "sds-grpc"}}}},
		}},
		ResourceApiVersion: corepb.ApiVersion_V3,
	}}
}

// revocations has a check of certificates obey the lists of revoked ones in a file, if there is a path.
func revocations(check *tlspb.CertificateValidationContext, roots *tlspb.SdsSecretConfig, crl string) {
	if crl == "" {
		return
	}
	check.Crl = &corepb.DataSource{Specifier: &corepb.DataSource_Filename{Filename: crl}}
	apart(roots, crl)
}

// revocationHeader is what a subscription of roots says besides, where their cluster or server names a list of
// revoked certificates. The agent passes it over.
const revocationHeader = "x-pilotd-revocations"

// apart makes of roots a subscription of its own for those with one list of revoked certificates. Envoy takes an update
// of a secret only if all who share the subscription can use it: with a list that is not there, nobody whose roots are
// the same would have TLS.
func apart(roots *tlspb.SdsSecretConfig, crl string) {
	sum := sha256.Sum256([]byte(crl))
	for _, s := range roots.GetSdsConfig().GetApiConfigSource().GetGrpcServices() {
		s.InitialMetadata = append(s.InitialMetadata,
			&corepb.HeaderValue{Key: revocationHeader, Value: hex.EncodeToString(sum[:8])})
	}
}
