package secure

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A root of somebody's own is replaced in three steps; at each of them an agent with a certificate, or with roots, from
// the step before is let in and trusts the server, and no stream ends.
func TestRootIsReplaced(t *testing.T) {
	inHouse(t, func(h *house) {
		web := node("sidecar", "shop", "web")
		next := newRoot(h.t, "next")
		both := slices.Concat(h.root.pem, next.pem)
		stays := h.open("web", agent{})
		defer stays.close()
		issue := func(roots []byte) agent {
			key := newKey(h.t)
			conn := h.dial(agent{roots: roots})
			defer conn.Close()
			chain, err := certificate(conn, with("web"), csr(h.t, key, "spiffe://cluster.local/ns/shop/sa/web"))
			if err != nil {
				h.t.Fatal(err)
			}
			b, _ := pem.Decode([]byte(chain[0]))
			return agent{roots: []byte(chain[len(chain)-1]), cert: &tls.Certificate{Certificate: [][]byte{b.Bytes},
				PrivateKey: key}}
		}
		before := issue(h.root.pem)
		for i, plug := range []func(){func() { h.plug(h.root, both) }, func() { h.plug(next, both) },
			func() { h.plug(next, next.pem) }} {
			plug()
			h.tick <- time.Time{}
			synctest.Wait()
			if err := h.secure.Keeper.Problem(); err != nil {
				h.t.Fatal(i, err)
			}
			h.begins("", web, before)
			before = issue(before.roots)
		}
		if string(before.roots) != string(next.pem) {
			h.t.Error("the old root is still trusted")
		}
		if h.streams.Streams.Streams() != 1 {
			h.t.Error("a stream ended")
		}
	})
}

// The serving certificate is for the server's names, and renewed when half of its life is gone; its key is new each
// time.
func TestServingCertificateIsRenewed(t *testing.T) {
	inHouse(t, func(h *house) {
		get := func() *x509.Certificate {
			c, err := h.secure.serving.Get(nil)
			if err != nil {
				h.t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(c.Certificate[0])
			if err != nil {
				h.t.Fatal(err)
			}
			return leaf
		}
		first := get()
		if !slices.Equal(first.DNSNames, []string{"istiod.istio-system.svc", "istio-pilot.istio-system.svc"}) ||
			len(first.URIs) != 0 {
			h.t.Error(first.DNSNames, first.URIs)
		}
		time.Sleep(servingLife/2 - time.Minute)
		if !get().Equal(first) {
			h.t.Error("it is renewed early")
		}
		time.Sleep(2 * time.Minute)
		later := get()
		if later.Equal(first) || first.PublicKey.(*ecdsa.PublicKey).Equal(later.PublicKey) {
			h.t.Error("it is not renewed, or with the same key")
		}
	})
}

// Where there is no authority there is nothing to serve, and files that are not there are told at the start.
func TestWithoutAuthority(t *testing.T) {
	none, err := New(Options{CADir: t.TempDir(), Now: time.Now, TrustDomains: func() []string { return nil }})
	if err != nil || none.Serves() || none.Waiting() != "" {
		t.Error(none.Serves(), none.Waiting(), err)
	}
	external, err := New(Options{External: true, Now: time.Now, TrustDomains: func() []string { return nil }})
	if err != nil || external.Serves() || external.service != nil {
		t.Error(external.Serves(), err)
	}
	if _, err := New(Options{CertFile: "none", KeyFile: "none", Now: time.Now}); err == nil {
		t.Error("a serving certificate that is not there is taken")
	}
}
