package secret

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/agent/upstream"
)

// write makes a certificate in a directory.
func write(t *testing.T, dir string) *Material {
	t.Helper()
	a := newAuthority(t)
	key, text, err := KeyKind{Curve: a.key.Curve}.generate()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := request(key, "spiffe://td/ns/a/sa/b")
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.sign(signable(string(csr)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMaterial([]byte(chain[0]), text, []byte(a.pem))
	if err == nil {
		err = m.write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Mounted files are the workload's certificate; a key without its certificate is waited for.
func TestMounted(t *testing.T) {
	dir := t.TempDir()
	if HasCertificate(dir) {
		t.Error("an empty directory has one")
	}
	first := write(t, dir)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := &Mounted{Dir: dir, Log: slog.New(slog.DiscardHandler)}
		tick := make(chan time.Time)
		go m.Run(ctx, tick)
		synctest.Wait()
		got, changed := m.Newest.Get()
		if got == nil || string(got.Key) != string(first.Key) || !HasCertificate(dir) {
			t.Fatal("it is not taken")
		}
		other := t.TempDir()
		second := write(t, other)
		for _, name := range []string{upstream.KeyFile, upstream.ChainFile, upstream.RootFile} {
			select {
			case <-changed:
				t.Error("half of it is taken")
			default:
			}
			if err := os.Rename(filepath.Join(other, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if name == upstream.ChainFile {
				continue // key and chain fit again: who looks now takes them, with the old root
			}
			tick <- time.Now()
			synctest.Wait()
		}
		if got, _ := m.Newest.Get(); string(got.Key) != string(second.Key) || string(got.Roots) != string(second.Roots) {
			t.Error("the new one is not taken")
		}
	})
}

// Names of files are followed: what is not there yet is waited for, what changes is new, what is bad leaves the old.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		system := filepath.Join(dir, upstream.RootFile)
		s := &Secrets{Files: &Files{System: []string{"/nowhere", system}, Log: slog.New(slog.DiscardHandler)}}
		tick := make(chan time.Time)
		go s.Files.Run(ctx, tick)
		look := func() { tick <- time.Now(); tick <- time.Now() } // the second is taken when the first is done
		cert := "file-cert:" + filepath.Join(dir, upstream.ChainFile) + "~" + filepath.Join(dir, upstream.KeyFile)
		got, _, changed, err := s.Get(cert)
		if got != nil || err != nil {
			t.Fatal("it is there already", err)
		}
		if _, _, _, err := s.Get("file-root:system"); err == nil {
			t.Error("the machine has no roots, and they are served")
		}
		write(t, dir)
		look()
		<-changed
		got, version, changed, err := s.Get(cert)
		if err != nil || got.GetName() != cert || len(got.GetTlsCertificate().GetPrivateKey().GetInlineBytes()) == 0 {
			t.Fatal(got, err)
		}
		for _, name := range []string{"file-root:" + system, "file-root:system"} {
			if root, _, _, err := s.Get(name); err != nil || root.GetValidationContext().GetTrustedCa() == nil {
				t.Error(name, root, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, upstream.KeyFile), []byte("bad"), 0o600); err != nil {
			t.Fatal(err)
		}
		look()
		if _, same, _, _ := s.Get(cert); same != version {
			t.Error("a bad key is taken")
		}
		write(t, dir)
		look()
		<-changed
		if _, next, _, _ := s.Get(cert); next == version {
			t.Error("the version stays")
		}
		for _, bad := range []string{"file-cert:", "file-cert:a", "file-cert:~b"} {
			if _, _, _, err := s.Get(bad); err == nil {
				t.Error(bad, "is taken")
			}
		}
		for i := range maxFiles + 1 {
			_, _, _, err = s.Get("file-root:" + strings.Repeat("x", i+1))
		}
		if !errors.Is(err, ErrTooMany) {
			t.Error(err)
		}
	})
}
