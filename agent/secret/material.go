package secret

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pilotd/pilotd/agent/upstream"
)

// ErrMaterial reports a certificate, a key or roots that cannot be used.
var ErrMaterial = errors.New("certificate")

// Material is a workload's certificate chain, its key and its roots, as PEM. Immutable.
type Material struct {
	Chain, Key, Roots []byte
	// NotAfter is when the leaf certificate expires.
	NotAfter time.Time
}

// String describes the Material without its key.
func (m *Material) String() string {
	return fmt.Sprintf("certificate until %s", m.NotAfter.UTC().Format(time.RFC3339))
}

// newMaterial checks that key and chain match, and that there are roots.
func newMaterial(chain, key, roots []byte) (*Material, error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	if err := checkRoots(roots); err != nil {
		return nil, err
	}
	return &Material{Chain: chain, Key: key, Roots: roots, NotAfter: pair.Leaf.NotAfter}, nil
}

// checkRoots returns an error unless the text has at least one certificate and nothing else.
func checkRoots(text []byte) error {
	n := 0
	for rest := text; ; n++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return fmt.Errorf("%w: root: %w", ErrMaterial, err)
		}
	}
	if n == 0 {
		return fmt.Errorf("%w: no root in PEM", ErrMaterial)
	}
	return nil
}

// fromDir reads a Material from a directory.
func fromDir(dir string) (*Material, error) {
	var parts [3][]byte
	for i, name := range []string{upstream.ChainFile, upstream.KeyFile, upstream.RootFile} {
		var err error
		if parts[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return newMaterial(parts[0], parts[1], parts[2])
}

// write writes the Material into a directory for other containers of the pod, each file atomically.
func (m *Material) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{upstream.ChainFile: m.Chain, upstream.KeyFile: m.Key,
		upstream.RootFile: m.Roots} {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if name == upstream.KeyFile {
			mode = 0o600
		}
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := os.WriteFile(path+".new", data, mode); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}
