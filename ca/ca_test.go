package ca

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func keyText(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	return []byte(encode("PRIVATE KEY", must[[]byte](t)(x509.MarshalPKCS8PrivateKey(key))))
}

// level is an authority of a hierarchy that a test makes.
type level struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// under makes an authority under another one, or a root under nil.
func under(t testing.TB, parent *level, name string, life time.Duration) *level {
	t.Helper()
	l := &level{key: ecKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), KeyUsage: x509.KeyUsageCertSign, IsCA: true,
		BasicConstraintsValid: true}
	signer, key := template, l.key
	if parent != nil {
		signer, key = parent.cert, parent.key
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, signer, &l.key.PublicKey, key))
	l.cert = must[*x509.Certificate](t)(x509.ParseCertificate(der))
	l.pem = []byte(encode("CERTIFICATE", der))
	return l
}

func (l *level) material(t testing.TB, chain, roots []byte) Material {
	return Material{Cert: l.pem, Key: keyText(t, l.key), Chain: chain, Roots: roots}
}

func web() identity.Identity {
	return identity.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "web"}
}

// opens fails unless the chain leads a client that trusts the roots to web.
func opens(t testing.TB, chain []string, roots []byte) *x509.Certificate {
	t.Helper()
	certs := must[[]*x509.Certificate](t)(parseAll([]byte(strings.Join(chain, ""))))
	pool, between := x509.NewCertPool(), x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if uris := certs[0].URIs; len(uris) != 1 || uris[0].String() != web().String() {
		t.Error("the certificate is for", uris)
	}
	return certs[0]
}

// A chain has the leaf first, all roots in the last string, and at least two strings; what stands between is what leads
// to a root.
func TestChains(t *testing.T) {
	root, other := under(t, nil, "root", time.Hour), under(t, nil, "other", time.Hour)
	first := under(t, root, "first", time.Hour)
	second := under(t, first, "second", time.Hour)
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		m       Material
		strings int
	}{
		"a root":                      {root.material(t, nil, root.pem), 2},
		"a root, two trusted":         {root.material(t, nil, cat(other.pem, root.pem)), 2},
		"an intermediate":             {first.material(t, nil, root.pem), 3},
		"an intermediate, full chain": {first.material(t, cat(first.pem, root.pem), root.pem), 3},
		"two intermediates, two trusted": {
			second.material(t, cat(second.pem, first.pem, root.pem), cat(other.pem, root.pem)), 4},
	} {
		t.Run(name, func(t *testing.T) {
			a := must[*Authority](t)(New(c.m))
			chain := must[[]string](t)(a.Sign(Request{Key: ecKey(t).Public(), Who: web(), Life: time.Minute}, time.Now()))
			if len(chain) != c.strings || chain[len(chain)-1] != string(c.m.Roots) || a.Roots() != string(c.m.Roots) {
				t.Errorf("%d strings, the last %q", len(chain), chain[len(chain)-1])
			}
			opens(t, chain, root.pem)
		})
	}
}

// Leaves are for client and server, for the time that was asked for but no longer than the authority's own, and their
// name is critical: they have no other.
func TestLeaves(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	key := ecKey(t)
	sign := func(life time.Duration) *x509.Certificate {
		return opens(t, must[[]string](t)(a.Sign(Request{Key: key.Public(), Who: web(), Life: life}, time.Now())), root.pem)
	}
	leaf := sign(10 * time.Minute)
	if d := time.Until(leaf.NotAfter); d < 9*time.Minute || d > 10*time.Minute || leaf.IsCA ||
		!key.PublicKey.Equal(leaf.PublicKey) || len(leaf.ExtKeyUsage) != 2 || leaf.Subject.String() != "" {
		t.Errorf("%v %+v", d, leaf)
	}
	for _, e := range leaf.Extensions {
		if e.Id.Equal([]int{2, 5, 29, 17}) && !e.Critical {
			t.Error("the name is not critical")
		}
	}
	if again := sign(10 * time.Minute); again.SerialNumber.Cmp(leaf.SerialNumber) == 0 {
		t.Error("two certificates have one serial number")
	}
	if long := sign(1000 * time.Hour); !long.NotAfter.Equal(root.cert.NotAfter) {
		t.Errorf("a leaf is good until %v, its authority until %v", long.NotAfter, root.cert.NotAfter)
	}
	late := time.Now().Add(2 * time.Hour)
	if _, err := a.Sign(Request{Key: key.Public(), Who: web(), Life: 1}, late); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}
}

// Material that would sign what nobody accepts is refused, in words that have no part of the key.
func TestBadMaterial(t *testing.T) {
	root, other := under(t, nil, "root", time.Hour), under(t, nil, "other", time.Hour)
	good := root.material(t, nil, root.pem)
	leaf := &level{key: ecKey(t)}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2),
		NotAfter: time.Now().Add(time.Hour)}, root.cert, &leaf.key.PublicKey, root.key))
	leaf.pem = []byte(encode("CERTIFICATE", der))
	for name, edit := range map[string]func(*Material){
		"no certificate":      func(m *Material) { m.Cert = nil },
		"two certificates":    func(m *Material) { m.Cert = append(bytes.Clone(root.pem), other.pem...) },
		"no key":              func(m *Material) { m.Key = nil },
		"a broken key":        func(m *Material) { m.Key = []byte(encode("PRIVATE KEY", []byte("secret"))) },
		"another key":         func(m *Material) { m.Key = keyText(t, other.key) },
		"an encrypted key":    func(m *Material) { m.Key = []byte(encode("ENCRYPTED PRIVATE KEY", []byte("secret"))) },
		"no roots":            func(m *Material) { m.Roots = nil },
		"another root":        func(m *Material) { m.Roots = other.pem },
		"rubbish among roots": func(m *Material) { m.Roots = append(bytes.Clone(root.pem), "rubbish"...) },
		"a key among roots":   func(m *Material) { m.Roots = append(bytes.Clone(root.pem), m.Key...) },
		"a broken chain":      func(m *Material) { m.Chain = []byte(encode("CERTIFICATE", []byte("x"))) },
		"not an authority":    func(m *Material) { m.Cert, m.Key = leaf.pem, keyText(t, leaf.key) },
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			edit(&m)
			_, err := New(m)
			if !errors.Is(err, ErrMaterial) {
				t.Fatal(err)
			}
			if len(m.Key) > 0 && bytes.Contains([]byte(err.Error()), m.Key[30:]) || strings.Contains(err.Error(), "secret") {
				t.Error("the key is told:", err)
			}
		})
	}
	k := NewKeeper(nil)
	if err := k.Take(good); err != nil {
		t.Fatal(err)
	}
	before := k.Authority()
	bad := good
	bad.Roots = other.pem
	if err := k.Take(bad); err == nil || k.Authority() != before || k.Problem() == nil {
		t.Error("the last good authority stays in force:", err)
	}
	if err := k.Take(good); err != nil || k.Authority() != before || k.Problem() != nil {
		t.Error("the same material changes nothing:", err)
	}
}

// No form of an authority that a log or a page could print has its key.
func TestKeysAreNotPrinted(t *testing.T) {
	m := must[Material](t)(SelfSigned(Root{Organization: "td", Life: time.Hour}, time.Now()))
	a := must[*Authority](t)(New(m))
	d := a.key.(*rsa.PrivateKey).D
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "authority", a, "material", m)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "authority", a, "material", m)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&log, format+format+"\n", a, m)
	}
	encoded := base64.StdEncoding.EncodeToString(m.Key[:60])
	for _, secret := range []string{string(m.Key[40:80]), encoded, d.String(), d.Text(16)} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("a key is printed: %.200s", log.String())
		}
	}
}

// A self-signed authority is renewed before it ends: with the same key, so that what was signed before and after is
// good under the old root and under the new one, and with both trusted.
func TestSelfSignedIsRenewed(t *testing.T) {
	root := Root{Organization: "cluster.local", Life: 100 * time.Hour}
	begin := time.Now()
	k := NewKeeper(nil)
	if err := k.Take(must[Material](t)(SelfSigned(root, begin))); err != nil {
		t.Fatal(err)
	}
	old := k.Authority()
	if _, ok, err := k.Renew(root, begin.Add(79*time.Hour)); ok || err != nil {
		t.Fatal("it is early:", err)
	}
	m, ok, err := k.Renew(root, begin.Add(81*time.Hour))
	if !ok || err != nil {
		t.Fatal(err)
	}
	if err := k.Take(m); err != nil {
		t.Fatal(err)
	}
	renewed := k.Authority()
	if n := strings.Count(renewed.Roots(), "BEGIN"); n != 2 || !renewed.NotAfter().After(old.NotAfter()) {
		t.Errorf("%d roots, good until %v", n, renewed.NotAfter())
	}
	req := Request{Key: ecKey(t).Public(), Who: web(), Life: time.Hour}
	before := must[[]string](t)(old.Sign(req, begin))
	for _, roots := range []string{old.Roots(), renewed.Roots(), string(m.Cert)} {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(roots))
		after := must[[]string](t)(renewed.Sign(req, begin.Add(81*time.Hour)))
		for at, chain := range map[time.Duration][]string{0: before, 81 * time.Hour: after} {
			leaf := must[[]*x509.Certificate](t)(parseAll([]byte(chain[0])))[0]
			at = max(at, 81*time.Hour) // the new root is not good before
			if at > time.Hour && chain[0] == before[0] {
				leaf.NotAfter = begin.Add(200 * time.Hour) // its own life is not what is asked
			}
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: begin.Add(at),
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
				t.Error(at, err)
			}
		}
	}
}

// A root that is renewed is called as before in every byte, whoever has made it: certificates name their signer so, and
// by its key's identifier.
func TestRenewedRootIsCalledTheSame(t *testing.T) {
	now, key := time.Now(), ecKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-100 * time.Hour),
		NotAfter: now.Add(time.Hour), Subject: pkix.Name{Organization: []string{"a", "b"}, CommonName: "by hand"},
		SubjectKeyId: []byte("of another version"), IsCA: true, BasicConstraintsValid: true}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	text := []byte(encode("CERTIFICATE", der))
	old := must[*Authority](t)(New(Material{Cert: text, Key: []byte(keyText(t, key)), Roots: text}))
	renewed := must[*Authority](t)(New(must[Material](t)(old.Renewed(Root{Organization: "x", Life: time.Hour}, now))))
	if !bytes.Equal(old.cert.RawSubject, renewed.cert.RawSubject) ||
		!bytes.Equal(old.cert.SubjectKeyId, renewed.cert.SubjectKeyId) {
		t.Errorf("%s %x became %s %x", old.cert.Subject, old.cert.SubjectKeyId, renewed.cert.Subject,
			renewed.cert.SubjectKeyId)
	}
	chain := must[[]string](t)(renewed.Sign(Request{Key: key.Public(), Who: web(), Life: time.Hour}, now))
	leaf := must[[]*x509.Certificate](t)(parseAll([]byte(chain[0])))[0]
	if !bytes.Equal(leaf.AuthorityKeyId, old.cert.SubjectKeyId) {
		t.Errorf("a certificate is signed by %x", leaf.AuthorityKeyId)
	}
	opens(t, chain, text) // under the root before
}

// Material comes in the two forms that Secrets have.
func TestForms(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	sub := under(t, root, "sub", time.Hour)
	key := keyText(t, sub.key)
	for name, data := range map[string]map[string][]byte{
		"cacerts": {"ca-cert.pem": sub.pem, "ca-key.pem": key, "root-cert.pem": root.pem, "cert-chain.pem": sub.pem},
		"tls":     {"tls.crt": append(bytes.Clone(sub.pem), root.pem...), "tls.key": key, "ca.crt": root.pem},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range data {
				if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, ok, err := ReadDir(dir)
			if !ok || err != nil {
				t.Fatal(err)
			}
			must[*Authority](t)(New(m))
		})
	}
	if _, ok, err := ReadDir(t.TempDir()); ok || err != nil {
		t.Error(ok, err)
	}
	old := must[Material](t)(SelfSigned(Root{Organization: "td", Life: time.Hour}, time.Now()))
	data := old.Data()
	delete(data, "root-cert.pem")
	if m, ok, err := FromData(data); !ok || err != nil || !m.equal(old) {
		t.Error(m, ok, err)
	}
}

// A directory is read again at each tick, and what is wrong with it is told once.
func TestWatchDir(t *testing.T) {
	dir, tick, problems := t.TempDir(), make(chan time.Time), 0
	became := make(chan *Authority, 10)
	k := NewKeeper(func(a *Authority) { became <- a })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.WatchDir(ctx, dir, tick, func(error) { problems++ }) }()
	tick <- time.Time{}
	tick <- time.Time{}
	if k.Problem() == nil || k.Authority() != nil {
		t.Error("there is no authority in an empty directory:", k.Problem())
	}
	for range 2 {
		m := must[Material](t)(SelfSigned(Root{Organization: "td", Life: time.Hour}, time.Now()))
		for name, text := range m.Data() {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tick <- time.Time{}
		if a := <-became; a.Roots() != string(m.Roots) || k.Problem() != nil {
			t.Error("another authority is in force:", k.Problem())
		}
	}
	stop()
	<-done
	if problems != 1 {
		t.Errorf("%d problems were told", problems)
	}
}

// csr returns a request of a key, with somebody's name in it.
func csr(t testing.TB, key crypto.Signer, name string) string {
	t.Helper()
	u := must[*url.URL](t)(url.Parse(name))
	template := &x509.CertificateRequest{URIs: []*url.URL{u}}
	der := must[[]byte](t)(x509.CreateCertificateRequest(rand.Reader, template, key))
	return encode("CERTIFICATE REQUEST", der)
}

// Keys are signed that are strong enough and that whoever asks has.
func TestKeysOfRequests(t *testing.T) {
	small := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024))
	rsa2048 := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	p384 := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	p521 := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const who = "spiffe://x/ns/a/sa/b"
	for name, key := range map[string]crypto.Signer{"RSA 2048": rsa2048, "P-256": ecKey(t), "P-384": p384, "Ed25519": ed} {
		if _, err := keyOf(csr(t, key, who)); err != nil {
			t.Error(name, err)
		}
	}
	good := csr(t, ecKey(t), who)
	b, _ := pem.Decode([]byte(good))
	forged := bytes.Clone(b.Bytes)
	forged[len(forged)-3] ^= 1
	for name, text := range map[string]string{
		"RSA 1024": csr(t, small, who), "P-521": csr(t, p521, who), "nothing": "", "no PEM": "x",
		"another kind": encode("CERTIFICATE", b.Bytes), "two": good + good, "rubbish": encode("CERTIFICATE REQUEST", []byte("x")),
		"not its own signature": encode("CERTIFICATE REQUEST", forged),
	} {
		if key, err := keyOf(text); err == nil {
			t.Errorf("%s: %T", name, key)
		}
	}
}

// FuzzCSR holds that any text is a key that may be signed, or an error.
func FuzzCSR(f *testing.F) {
	f.Add(csr(f, ecKey(f), "spiffe://x/ns/a/sa/b"))
	f.Add("-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----")
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := keyOf(text); (key == nil) == (err == nil) || key != nil && checkKey(key) != nil {
			t.Errorf("%T, %v", key, err)
		}
	})
}

// FuzzMaterial holds that any texts make an authority that can sign, or an error.
func FuzzMaterial(f *testing.F) {
	root := under(f, nil, "root", time.Hour)
	m := root.material(f, root.pem, root.pem)
	f.Add(m.Cert, m.Key, m.Chain, m.Roots)
	f.Add(m.Cert, []byte("-----BEGIN EC PARAMETERS-----\nAA==\n-----END EC PARAMETERS-----\n"), m.Chain, m.Roots)
	key := ecKey(f)
	f.Fuzz(func(t *testing.T, cert, private, chain, roots []byte) {
		a, err := New(Material{cert, private, chain, roots})
		if err != nil {
			return
		}
		request := Request{Key: key.Public(), Who: web(), Life: time.Hour}
		if _, err := a.Sign(request, a.NotAfter().Add(-time.Second)); err != nil && !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
	})
}
