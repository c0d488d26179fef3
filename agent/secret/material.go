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

// ErrMaterial is what cannot be used as a certificate, a key or roots.
var ErrMaterial = errors.New("certificate")

// Material is a workload's certificate with its key, and whom it trusts, as PEM. Immutable.
type Material struct {
	Chain, Key, Roots []byte
	// NotAfter is the leaf's end.
	NotAfter time.Time
}

// String has no key.
func (m *Material) String() string {
	return fmt.Sprintf("certificate until %s", m.NotAfter.UTC().Format(time.RFC3339))
}

// newMaterial checks that key and chain fit each other, and that there are roots.
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

// checkRoots wants at least one certificate and nothing that is none.
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

// fromDir reads the Material of a directory.
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

// write puts the Material into a directory for others in the pod, each file whole or not at all.
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
