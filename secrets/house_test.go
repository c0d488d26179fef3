package secrets

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority signs certificates in tests.
type authority struct {
	key  crypto.Signer
	cert *x509.Certificate
	pem  []byte
}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func ecKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return must(t, key, err)
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: ecKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	a.pem = block("CERTIFICATE", must(t, der, err))
	a.cert, err = x509.ParseCertificate(der)
	must(t, a.cert, err)
	return a
}

// issue returns a certificate of a key, and the key, in PEM.
func (a *authority) issue(t testing.TB, key crypto.Signer, life time.Duration) (cert, private []byte) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(7), DNSNames: []string{"a.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	must(t, der, err)
	own, err := x509.MarshalPKCS8PrivateKey(key)
	return block("CERTIFICATE", der), block("PRIVATE KEY", must(t, own, err))
}

// crl is a list of revoked certificates.
func (a *authority) crl(t testing.TB) []byte {
	t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1),
		ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}, a.cert, a.key)
	return block("X509 CRL", must(t, der, err))
}

func rsaKey(t testing.TB, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	return must(t, key, err)
}

// rights are answers to who may list Secrets; those that are not there fail.
type rights struct {
	mu    sync.Mutex
	of    map[string]bool // by service account
	asked int
	wait  chan struct{} // a question waits for it; nil for nothing
}

// MayListSecrets implements Rights.
func (r *rights) MayListSecrets(ctx context.Context, who identity.Identity) (bool, error) {
	r.mu.Lock()
	r.asked++
	may, ok := r.of[who.ServiceAccount]
	wait := r.wait
	r.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if !ok {
		return false, errors.New("away")
	}
	return may, nil
}

func (r *rights) set(account string, may bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[account] = may
}

func (r *rights) may(account string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[account]
}

func (r *rights) forget(account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, account)
}

// house is a Store with files, in a bubble where time passes only when all wait.
type house struct {
	*Store
	t      testing.TB
	files  *Files
	rights *rights

	mu      sync.Mutex
	trouble map[string]string // by namespace and resource
}

func inHouse(t *testing.T, r *rights, f func(t *testing.T, h *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, rights: r, trouble: map[string]string{}}
		o := Options{Now: time.Now, Every: func(d time.Duration) <-chan time.Time { return time.Tick(d) },
			Trouble: h.told}
		if r != nil {
			o.Rights = r
		}
		h.Store = New(o)
		h.files = NewFiles(h.Store)
		h.files.Ready()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { h.Run(ctx) })
		all.Go(func() { h.files.Run(ctx) })
		f(t, h)
		cancel()
		all.Wait()
	})
}

func (h *house) told(namespace, resource, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble[namespace+" "+resource] = reason; reason == "" {
		delete(h.trouble, namespace+" "+resource)
	}
}

func (h *house) reason(namespace, resource string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.trouble)[namespace+" "+resource]
}

// put gives a Secret of namespace shop these keys and values.
func (h *house) put(name string, d Data) {
	h.files.Set(Object{Namespace: "shop", Name: name}, d)
	synctest.Wait()
}

func who(account string) identity.Identity {
	return identity.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: account}
}

// view is a View with what it has been told.
type view struct {
	*View
	changes int
}

func (h *house) open(who identity.Identity, names ...string) *view {
	v := &view{}
	v.View = h.Open(who, namesOf(names...), nil, func() { v.changes++ })
	synctest.Wait()
	return v
}

func namesOf(names ...string) Names {
	items := make([]chunked.Item[struct{}], len(names))
	for i, n := range names {
		items[i].Key = n
	}
	return chunked.New(items)
}

// Close closes the View and waits until that is done.
func (v *view) Close() {
	v.View.Close()
	synctest.Wait()
}

// has returns the names that the view gets; "?" if that is not known.
func (v *view) has() (out []string) {
	section, known := v.Resources()
	if !known {
		return []string{"?"}
	}
	for name := range section.All() {
		out = append(out, name)
	}
	return out
}

func leafOf(t testing.TB, cert []byte) *x509.Certificate {
	t.Helper()
	b, _ := pem.Decode(cert)
	c, err := x509.ParseCertificate(b.Bytes)
	return must(t, c, err)
}
