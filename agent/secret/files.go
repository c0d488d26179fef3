package secret

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/pilotd/pilotd/agent/cell"
)

// Prefixes of secret names that contain paths.
const (
	certPrefix = "file-cert:"
	rootPrefix = "file-root:"
)

// maxFiles is how many names of files are followed at the same time. Configuration asks for each name once.
const maxFiles = 1024

type fileKind byte

const (
	notFiles fileKind = iota
	certFiles
	rootFile
)

func kindOf(name string) fileKind {
	switch {
	case strings.HasPrefix(name, certPrefix):
		return certFiles
	case strings.HasPrefix(name, rootPrefix):
		return rootFile
	}
	return notFiles
}

// Files serves secrets from files that configuration names: file-cert:CHAIN~KEY, file-root:ROOTS, file-root:system. It
// waits for a file that does not exist yet. Safe for concurrent use.
type Files struct {
	// System are paths of the machine's own roots. The first that exists is used.
	System []string
	Log    *slog.Logger

	mu sync.Mutex
	// Guarded by mu.
	followed map[string]*followed
}

// followed is one name and the state of its files. Its fields except the cell are guarded by the mutex of Files.
type followed struct {
	newest cell.Cell[tlsv3.Secret]
	paths  []string
	seen   [2]stamp
	said   string
}

// SystemRootFiles returns the paths at which Linux distributions keep the roots of the machine.
func SystemRootFiles() []string {
	return []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}
}

// follow returns the cell of a name's newest secret, and follows its files from now on.
func (f *Files) follow(name string) (*cell.Cell[tlsv3.Secret], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.followed[name]; one != nil {
		return &one.newest, nil
	}
	if len(f.followed) >= maxFiles {
		return nil, fmt.Errorf("%w: at most %d", ErrTooMany, maxFiles)
	}
	paths, err := f.paths(name)
	if err != nil {
		return nil, err
	}
	if f.followed == nil {
		f.followed = map[string]*followed{}
	}
	one := &followed{paths: paths}
	f.followed[name] = one
	f.look(name, one)
	return &one.newest, nil
}

func (f *Files) paths(name string) ([]string, error) {
	if chain, ok := strings.CutPrefix(name, certPrefix); ok {
		chain, key, ok := strings.Cut(chain, "~")
		if !ok || chain == "" || key == "" {
			return nil, fmt.Errorf("secret %q: want %sCHAIN~KEY", name, certPrefix)
		}
		return []string{chain, key}, nil
	}
	root := strings.TrimPrefix(name, rootPrefix)
	if root != "system" {
		return []string{root}, nil
	}
	for _, path := range f.System {
		if _, err := os.Stat(path); err == nil {
			return []string{path}, nil
		}
	}
	return nil, fmt.Errorf("secret %q: this machine has no roots in any of %v", name, f.System)
}

// Run checks at each tick whether files have changed, until ctx ends.
func (f *Files) Run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			f.mu.Lock()
			for name, one := range f.followed {
				f.look(name, one)
			}
			f.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// look reads the files of a name if they have changed. If they cannot be used, the former secret stays. The caller
// holds mu.
func (f *Files) look(name string, one *followed) {
	var now [2]stamp
	for i, path := range one.paths {
		now[i] = stampOf(path)
	}
	if now == one.seen && one.said == "" {
		return
	}
	secret, err := readFiles(name, one.paths)
	if err != nil {
		if one.said != err.Error() {
			one.said = err.Error()
			f.Log.Error("a secret in files cannot be used", "name", name, "error", err)
		}
		return
	}
	one.seen, one.said = now, ""
	one.newest.Set(secret)
}

func readFiles(name string, paths []string) (*tlsv3.Secret, error) {
	var data [2][]byte
	for i, path := range paths {
		var err error
		if data[i], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if kindOf(name) == rootFile {
		if err := checkRoots(data[0]); err != nil {
			return nil, err
		}
		return &tlsv3.Secret{Name: name, Type: validation(data[0])}, nil
	}
	if _, err := tls.X509KeyPair(data[0], data[1]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	return &tlsv3.Secret{Name: name, Type: certificate(data[0], data[1])}, nil
}
