package secrets

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"golang.org/x/crypto/ocsp"
	"google.golang.org/protobuf/proto"
)

// Each layout of a Secret becomes what Envoy asks for, byte for byte.
func TestLayouts(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, ecKey(t), time.Hour)
	crl := a.crl(t)
	own := ecKey(t)
	signed, private := a.issue(t, own, time.Hour)
	staple := stapleOf(t, a, signed)
	for _, c := range []struct {
		name string
		data Data
		part Part
		want [4][]byte // chain, key, staple; or roots, revoked
	}{
		{"tls", Data{"tls.crt": cert, "tls.key": key, "ca.crt": a.pem}, Certificate, [4][]byte{cert, key}},
		{"tls with a staple", Data{"tls.crt": signed, "tls.key": private, "tls.ocsp-staple": staple}, Certificate,
			[4][]byte{signed, private, staple}},
		{"generic", Data{"cert": cert, "key": key}, Certificate, [4][]byte{cert, key}},
		{"both", Data{"cert": cert, "key": key, "tls.crt": a.pem, "tls.key": key}, Certificate, [4][]byte{cert, key}},
		{"roots beside", Data{"tls.crt": cert, "tls.key": key, "ca.crt": a.pem}, Roots, [4][]byte{a.pem}},
		{"roots alone", Data{"cacert": a.pem}, Roots, [4][]byte{a.pem}},
		{"revoked", Data{"ca.crt": a.pem, "ca.crl": crl}, Roots, [4][]byte{a.pem, crl}},
		{"revoked, by the other layout's key", Data{"cacert": a.pem, "ca.crl": crl}, Roots, [4][]byte{a.pem, crl}},
		{"revoked, generic", Data{"cacert": a.pem, "crl": crl, "ca.crl": []byte("x")}, Roots, [4][]byte{a.pem, crl}},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := (&Asked{Resource: "kubernetes://x", Part: c.part}).entry(Read(c.data))
			if err != nil {
				t.Fatal(err)
			}
			e := made.entry
			s := &tlspb.Secret{}
			if err := proto.Unmarshal(e.Message(), s); err != nil || s.Name != "kubernetes://x" || e.Name() != s.Name {
				t.Fatal(s.Name, err)
			}
			tls, check := s.GetTlsCertificate(), s.GetValidationContext()
			got := [4][]byte{tls.GetCertificateChain().GetInlineBytes(), tls.GetPrivateKey().GetInlineBytes(),
				tls.GetOcspStaple().GetInlineBytes()}
			if c.part == Roots {
				got = [4][]byte{check.GetTrustedCa().GetInlineBytes(), check.GetCrl().GetInlineBytes()}
			}
			for i := range got {
				if !bytes.Equal(got[i], c.want[i]) {
					t.Errorf("%d: %q", i, got[i])
				}
			}
		})
	}
}

// stapleOf is what an authority says of a certificate.
func stapleOf(t *testing.T, a *authority, cert []byte) []byte {
	t.Helper()
	r, err := ocsp.CreateResponse(a.cert, a.cert, ocsp.Response{Status: ocsp.Good,
		SerialNumber: leafOf(t, cert).SerialNumber, ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}, a.key)
	return must(t, r, err)
}

// What Envoy would refuse, and with it all that came in the same response, is refused here, with the key and the reason
// and nothing of what it holds.
func TestBadSecrets(t *testing.T) {
	a := newAuthority(t)
	good := ecKey(t)
	cert, key := a.issue(t, good, time.Hour)
	other, otherKey := a.issue(t, ecKey(t), time.Hour)
	small, smallKey := a.issue(t, rsaKey(t, 1024), time.Hour)
	for _, c := range []struct {
		name string
		data Data
		part Part
		want string
	}{
		{"nothing", Data{}, Certificate, "want tls.crt and tls.key, or cert and key; it has nothing"},
		{"no key", Data{"tls.crt": cert, "password": key}, Certificate, "it has password, tls.crt"},
		{"empty key", Data{"tls.crt": cert, "tls.key": nil}, Certificate, "it has no certificate with a key"},
		{"no PEM", Data{"tls.crt": []byte("x"), "tls.key": key}, Certificate, "tls.crt: want certificates in PEM"},
		{"another key", Data{"tls.crt": cert, "tls.key": otherKey}, Certificate, "tls.crt and tls.key: the private key is not that of the first"},
		{"exchanged", Data{"tls.crt": key, "tls.key": cert}, Certificate, "a private key stands among the certificates"},
		{"key in the chain", Data{"tls.crt": append(bytes.Clone(cert), key...), "tls.key": key}, Certificate,
			"a private key stands among the certificates"},
		{"small", Data{"cert": small, "key": smallKey}, Certificate, "key: an RSA key of 1024 bits: want 2048 to 16384"},
		{"a staple of another", Data{"tls.crt": cert, "tls.key": key, "tls.ocsp-staple": []byte("x")}, Certificate,
			"tls.ocsp-staple: want an OCSP response"},
		{"too large", Data{"tls.crt": cert, "tls.key": bytes.Repeat([]byte{'\n'}, maxData)}, Certificate, "want at most"},
		{"no roots", Data{"tls.crt": cert, "tls.key": key}, Roots, "it has no roots: want ca.crt or cacert"},
		{"roots of text", Data{"ca.crt": []byte("x")}, Roots, "ca.crt: want certificates in PEM"},
		{"a broken root", Data{"ca.crt": append(bytes.Clone(other), block("CERTIFICATE", []byte{1, 2, 3})...)}, Roots,
			"ca.crt: certificate 2: x509: malformed certificate"},
		{"a key among roots", Data{"cacert": append(bytes.Clone(other), key...)}, Roots, "cacert: a private key stands"},
		{"revoked of text", Data{"ca.crt": a.pem, "ca.crl": []byte("x")}, Roots, "ca.crl: want a list of revoked"},
		{"revoked broken", Data{"ca.crt": a.pem, "ca.crl": block("X509 CRL", []byte{1})}, Roots, "ca.crl: list 1: x509:"},
		{"revoked is a root", Data{"ca.crt": a.pem, "ca.crl": a.pem}, Roots, "ca.crl: want lists of revoked certificates alone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := (&Asked{Resource: "kubernetes://x", Part: c.part}).entry(Read(c.data))
			if made.entry != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			for _, line := range bytes.Split(append(bytes.Clone(key), otherKey...), []byte("\n")) {
				if len(line) > 8 && !bytes.HasPrefix(line, []byte("---")) && strings.Contains(err.Error(), string(line)) {
					t.Errorf("the reason quotes a key: %v", err)
				}
			}
		})
	}
}

// A secret has no form that shows it.
func TestSecretsAreNotPrinted(t *testing.T) {
	cert, key := newAuthority(t).issue(t, ecKey(t), time.Hour)
	d := Data{"tls.crt": cert, "tls.key": key}
	m := Read(d)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "data", d, "material", m, "found", Found{Material: m})
	}
	fmt.Fprintf(&log, "%v %+v %#v %s %v %+v %#v %s", d, d, d, d, m, m, m, m)
	hidden := string(key[40:80])
	for _, text := range []string{hidden, fmt.Sprint([]byte(hidden)), fmt.Sprintf("%x", hidden),
		base64.StdEncoding.EncodeToString(key)[56:100]} {
		if strings.Contains(log.String(), text) {
			t.Errorf("a key is printed: %.300s", log.String())
		}
	}
}

// Whatever a Secret holds, it is read without a panic, and what is made of it is whole.
func FuzzRead(f *testing.F) {
	a := newAuthority(f)
	cert, key := a.issue(f, ecKey(f), time.Hour)
	f.Add(cert, key, a.pem)
	f.Add(a.pem, key, a.crl(f))
	f.Add(append(bytes.Clone(cert), a.pem...), []byte("-----BEGIN"), []byte{0x30, 3})
	f.Fuzz(func(t *testing.T, chain, key, more []byte) {
		for _, d := range []Data{{"cert": chain, "key": key, "cacert": chain, "crl": more}, {"ca.crt": chain, "ca.crl": more},
			{"tls.crt": chain, "tls.key": key, "ca.crt": more, "ca.crl": key, "tls.ocsp-staple": more}} {
			m := Read(d)
			for _, part := range []Part{Certificate, Roots} {
				made, err := (&Asked{Resource: "kubernetes://x", Part: part}).entry(m)
				if (made.entry == nil) == (err == nil) {
					t.Fatal(made, err)
				}
				if err != nil && len(err.Error()) > 1000 {
					t.Errorf("a reason of %d bytes", len(err.Error()))
				}
			}
		}
	})
}

// Whatever a client calls a secret, it gets what is of its own namespace, or a reason.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"kubernetes://a", "kubernetes://shop/a-cacert", "kubernetes-gateway://shop/a",
		"configmap://shop/a", "kubernetes:///", "kubernetes://a/b/c", "kubernetes://-cacert", "invalid://", "default"} {
		f.Add(name, "shop")
	}
	f.Fuzz(func(t *testing.T, name, namespace string) {
		a, err := Parse(name, namespace)
		if err != nil {
			return
		}
		if len(a.Objects) == 0 || namespace == "" {
			t.Fatalf("%q of %q asks for nothing", name, namespace)
		}
		for _, o := range a.Objects {
			if o.Namespace != namespace || o.Name == "" || strings.Contains(o.Name, "/") ||
				a.Part == Certificate && o.ConfigMap {
				t.Errorf("%q of %q asks for %+v", name, namespace, a)
			}
		}
		if (a.Part == Certificate) != a.Reviewed {
			t.Errorf("%q: %+v", name, a)
		}
	})
}
