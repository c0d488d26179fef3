package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/agent/cell"
)

// Names of the secrets that the workload's own certificate provides.
const (
	Default = "default"
	RootCA  = "ROOTCA"
)

// ErrTooMany reports that too many names of files are in use.
var ErrTooMany = errors.New("too many names of files")

// Secrets provides every secret that Envoy can ask for.
type Secrets struct {
	// Workload is the workload's certificate.
	Workload *cell.Cell[Material]
	// Files are those that configuration names.
	Files *Files
	// CRL is the path of a list of revoked certificates, which is used if it exists.
	CRL string
}

// Get returns a secret, or nil if there is none yet, with its version, and a channel that is closed when it may have
// changed.
func (s *Secrets) Get(name string) (*tlsv3.Secret, string, <-chan struct{}, error) {
	if kind := kindOf(name); kind != notFiles {
		files, err := s.Files.follow(name)
		if err != nil {
			return nil, "", nil, err
		}
		secret, changed := files.Get()
		return secret, versionOf(secret), changed, nil
	}
	m, changed := s.Workload.Get()
	if m == nil {
		return nil, "", changed, nil
	}
	secret := &tlsv3.Secret{Name: name}
	if name == RootCA {
		secret.Type = validation(m.Roots)
		if _, err := os.Stat(s.CRL); err == nil {
			secret.GetValidationContext().Crl = &corev3.DataSource{
				Specifier: &corev3.DataSource_Filename{Filename: s.CRL}}
		}
	} else {
		secret.Type = certificate(m.Chain, m.Key)
	}
	return secret, versionOf(secret), changed, nil
}

func certificate(chain, key []byte) *tlsv3.Secret_TlsCertificate {
	return &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline(chain), PrivateKey: inline(key)}}
}

func validation(roots []byte) *tlsv3.Secret_ValidationContext {
	return &tlsv3.Secret_ValidationContext{
		ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(roots)}}
}

func inline(data []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: data}}
}

// versionOf returns a hash of the secret. It does not reveal the key.
func versionOf(s *tlsv3.Secret) string {
	if s == nil {
		return ""
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
