package e2e_test

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
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"sync"
	"testing"
	"time"

	bootstrappb "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"golang.org/x/crypto/ocsp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/secrets"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// judgement is who takes a Secret.
type judgement uint8

const (
	taken    judgement = iota // pilotd sends it, and Envoy takes it
	refusing                  // Envoy would refuse it, so pilotd does not send it
	stricter                  // pilotd does not send it, though Envoy would take it
)

// oddSecret is a Secret as people may make one.
type oddSecret struct {
	name string
	data secrets.Data
	want judgement
}

// oddities has what odd Secrets are made of.
type oddities struct {
	t               *testing.T
	a, other        *parts.Authority
	ec, rsa         crypto.Signer
	cert, key       []byte // of ec
	rsaCert, rsaKey []byte
	cut, badDER     []byte
}

func newOddities(t *testing.T) *oddities {
	o := &oddities{t: t, a: parts.NewAuthority(t), other: parts.NewAuthority(t), ec: ecdsaKey(t, elliptic.P256()),
		rsa: rsaKey(t, 2048), badDER: pemOf("CERTIFICATE", []byte{0x30, 3, 2, 1, 1})}
	o.cert, o.key = o.host(o.ec)
	o.rsaCert, o.rsaKey = o.host(o.rsa)
	o.cut = o.cert[:len(o.cert)*2/3]
	return o
}

func (o *oddities) host(key crypto.Signer) (chain, private []byte) {
	return o.a.Issue(o.t, &x509.Certificate{DNSNames: []string{"a.example.com"}}, key)
}

func (o *oddities) of(key crypto.Signer) secrets.Data { return pair(o.host(key)) }

// behind is the certificate with something after it in the chain.
func (o *oddities) behind(more ...[]byte) secrets.Data {
	return pair(join(append([][]byte{o.cert}, more...)...), o.key)
}

func pair(chain, key []byte) secrets.Data { return secrets.Data{"tls.crt": chain, "tls.key": key} }

func join(texts ...[]byte) []byte { return bytes.Join(texts, nil) }

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func derOf(text []byte) []byte {
	b, _ := pem.Decode(text)
	return b.Bytes
}

// withHeaders is the first block of a text with headers.
func withHeaders(text []byte, pairs ...string) []byte {
	b, _ := pem.Decode(text)
	b.Headers = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		b.Headers[pairs[i]] = pairs[i+1]
	}
	return pem.EncodeToMemory(b)
}

func ecdsaKey(t *testing.T, c elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (o *oddities) keys() []oddSecret {
	sec1, err := x509.MarshalECPrivateKey(o.ec.(*ecdsa.PrivateKey))
	if err != nil {
		o.t.Fatal(err)
	}
	pkcs1 := x509.MarshalPKCS1PrivateKey(o.rsa.(*rsa.PrivateKey))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		o.t.Fatal(err)
	}
	ofOther, otherKey := o.other.Host(o.t, time.Time{}, "b.example.com")
	curve := pemOf("EC PARAMETERS", []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7})
	return []oddSecret{
		{"PKCS#8", pair(o.cert, o.key), taken},
		{"RSA", pair(o.rsaCert, o.rsaKey), taken},
		{"PKCS#1", pair(o.rsaCert, pemOf("RSA PRIVATE KEY", pkcs1)), taken},
		{"SEC1 after its curve", pair(o.cert, join(curve, pemOf("EC PRIVATE KEY", sec1))), taken},
		{"P-224", o.of(ecdsaKey(o.t, elliptic.P224())), refusing},
		{"P-384", o.of(ecdsaKey(o.t, elliptic.P384())), taken},
		{"P-521", o.of(ecdsaKey(o.t, elliptic.P521())), taken},
		{"Ed25519", o.of(ed), taken},
		{"RSA of 1024 bits", o.of(rsaKey(o.t, 1024)), refusing},
		{"key of another", pair(o.cert, otherKey), refusing},
		{"SEC1 called PKCS#8", pair(o.cert, pemOf("PRIVATE KEY", sec1)), refusing},
		{"PKCS#1 called PKCS#8", pair(o.rsaCert, pemOf("PRIVATE KEY", pkcs1)), refusing},
		{"PKCS#8 called SEC1", pair(o.cert, pemOf("EC PRIVATE KEY", derOf(o.key))), taken},
		{"PKCS#8 called PKCS#1", pair(o.rsaCert, pemOf("RSA PRIVATE KEY", derOf(o.rsaKey))), taken},
		{"PKCS#1 called SEC1", pair(o.rsaCert, pemOf("EC PRIVATE KEY", pkcs1)), refusing},
		{"PKCS#8 called otherwise", pair(o.cert, pemOf("NICE PRIVATE KEY", derOf(o.key))), refusing},
		{"encrypted", pair(o.cert, pemOf("ENCRYPTED PRIVATE KEY", derOf(o.key))), refusing},
		{"encrypted as of old", pair(o.rsaCert, withHeaders(pemOf("RSA PRIVATE KEY", pkcs1), "Proc-Type", "4,ENCRYPTED",
			"DEK-Info", "AES-128-CBC,0123456789ABCDEF0123456789ABCDEF")), refusing},
		{"bytes after the key", pair(o.cert, pemOf("PRIVATE KEY", join(derOf(o.key), []byte{0, 0}))), taken},
		{"key, then half a block", pair(o.cert, join(o.key, o.cut)), taken},
		{"half a block, then the key", pair(o.cert, join(o.cut, []byte("\n"), o.key)), refusing},
		{"certificate, then the key", pair(o.cert, join(o.cert, o.key)), taken},
		{"certificate without a key", pair(o.cert, []byte("none")), refusing},
		{"both layouts", secrets.Data{"cert": o.cert, "key": o.key, "tls.crt": ofOther, "tls.key": o.key}, taken},
	}
}

func (o *oddities) chains() []oddSecret {
	expired, expiredKey := o.a.Host(o.t, time.Now().Add(-time.Minute), "a.example.com")
	ofOther, _ := o.other.Host(o.t, time.Time{}, "b.example.com")
	crlf := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte(" \t\r\n")) }
	indented := bytes.ReplaceAll(o.cert, []byte("\n"), []byte("\n  "))
	oneLine := fmt.Appendf(nil, "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----",
		base64.StdEncoding.EncodeToString(derOf(o.cert)))
	block := func(text string) []byte { return []byte("-----BEGIN X-----\n" + text) }
	return []oddSecret{
		{"leaf, root", o.behind(o.a.Root), taken},
		{"root, leaf", pair(join(o.a.Root, o.cert), o.key), refusing},
		{"several leafs", o.behind(o.cert, ofOther, o.a.Root, o.other.Root), taken},
		{"lines of Windows", pair(crlf(o.cert), crlf(o.key)), taken},
		{"text around", pair(join([]byte("Bag Attributes\n  x: y\n"), o.cert, []byte("\nsubject=x\n\n"), o.a.Root,
			[]byte("tail")), join([]byte("text\n"), o.key, []byte("tail"))), taken},
		{"byte order mark", pair(join([]byte("\xef\xbb\xbf"), o.cert), o.key), refusing},
		{"indented", pair(indented, o.key), refusing},
		{"on one line", pair(oneLine, o.key), taken},
		{"a NUL", o.behind([]byte("\x00\n"), o.a.Root), taken},
		{"half a block at the end", o.behind(o.cut), refusing},
		{"broken base64 between", o.behind(bytes.ReplaceAll(o.cert, []byte("\nMII"), []byte("\n!!!")), o.a.Root), refusing},
		{"no certificate at the end", o.behind(o.badDER), refusing},
		{"an empty block", o.behind(block("-----END X-----\n")), refusing},
		{"a block that ends as another", o.behind(block("AAAA\n-----END Y-----\n"), o.a.Root), refusing},
		{"a block that begins twice", o.behind([]byte("-----BEGIN \n"), o.a.Root), taken},
		{"headers", pair(withHeaders(o.cert, "a", "b"), o.key), refusing},
		{"bytes after the certificate", pair(pemOf("CERTIFICATE", join(derOf(o.cert), []byte{0, 0})), o.key), refusing},
		{"bytes after the second", o.behind(pemOf("CERTIFICATE", join(derOf(o.cert), []byte{0, 0}))), stricter},
		{"expired", pair(expired, expiredKey), taken},
		{"called as of old", pair(pemOf("X509 CERTIFICATE", derOf(o.cert)), o.key), taken},
		{"another before", pair(join(pemOf("X509 CERTIFICATE", derOf(ofOther)), o.cert), o.key), refusing},
		{"called trusted", o.behind(pemOf("TRUSTED CERTIFICATE", derOf(o.a.Root))), taken},
		{"parameters", o.behind(pemOf("DH PARAMETERS", []byte{1, 2})), taken},
		{"a request", o.behind(pemOf("CERTIFICATE REQUEST", []byte{1, 2})), taken},
		{"a list", o.behind(pemOf("X509 CRL", []byte{1, 2})), taken},
		{"the key", o.behind(o.key), stricter},
		{"a thousand roots", o.behind(bytes.Repeat(o.a.Root, 1000)), taken},
	}
}

func (o *oddities) staples() []oddSecret {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	feature := pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}
	must, mustKey := o.a.Issue(o.t, &x509.Certificate{DNSNames: []string{"a.example.com"},
		ExtraExtensions: []pkix.Extension{feature}}, o.ec)
	ofOther, _ := o.other.Host(o.t, time.Time{}, "b.example.com")
	with := func(staple []byte) secrets.Data {
		return secrets.Data{"tls.crt": o.cert, "tls.key": o.key, "tls.ocsp-staple": staple}
	}
	good := o.a.Staple(o.t, o.cert, ocsp.Good, soon)
	return []oddSecret{
		{"staple", with(good), taken},
		{"staple, other layout", secrets.Data{"cert": o.cert, "key": o.key, "tls.ocsp-staple": good}, taken},
		{"staple: revoked", with(o.a.Staple(o.t, o.cert, ocsp.Revoked, soon)), taken},
		{"staple: expired", with(o.a.Staple(o.t, o.cert, ocsp.Good, past)), taken},
		{"staple of somebody else", with(o.other.Staple(o.t, o.cert, ocsp.Good, soon)), taken},
		{"staple about another", with(o.other.Staple(o.t, ofOther, ocsp.Good, soon)), refusing},
		{"staple with more", with(join(good, []byte{0})), refusing},
		{"staple in PEM", with(pemOf("OCSP RESPONSE", good)), refusing},
		{"staple: try later", with(ocsp.TryLaterErrorResponse), refusing},
		{"staple that must be", pair(must, mustKey), refusing},
		{"staple that must be and is", secrets.Data{"tls.crt": must, "tls.key": mustKey,
			"tls.ocsp-staple": o.a.Staple(o.t, must, ocsp.Good, soon)}, taken},
	}
}

// roots are Secrets of which the roots are asked for.
func (o *oddities) roots() []oddSecret {
	expired, _ := o.a.Host(o.t, time.Now().Add(-time.Minute), "a.example.com")
	of := func(texts ...[]byte) secrets.Data { return secrets.Data{"ca.crt": join(texts...)} }
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	list, ofOther := o.a.Revoke(o.t, soon, o.cert), o.other.Revoke(o.t, soon)
	with := func(texts ...[]byte) secrets.Data { return secrets.Data{"ca.crt": o.a.Root, "ca.crl": join(texts...)} }
	return []oddSecret{
		{"roots", of([]byte("x\n"), o.a.Root, []byte("y\n"), o.other.Root, o.a.Root, []byte("z")), taken},
		{"root that is a leaf", of(o.cert), taken},
		{"root that has expired", of(expired), taken},
		{"roots, then half a block", of(o.a.Root, o.cut), refusing},
		{"roots and no certificate", of(o.a.Root, o.badDER), refusing},
		{"root called as of old", of(pemOf("X509 CERTIFICATE", derOf(o.a.Root))), taken},
		{"root called trusted", of(pemOf("TRUSTED CERTIFICATE", derOf(o.a.Root))), taken},
		{"roots, the second called trusted", of(o.a.Root, pemOf("TRUSTED CERTIFICATE", []byte{1})), refusing},
		{"root with headers", of(withHeaders(o.a.Root, "a", "b")), refusing},
		{"root and a key", of(o.a.Root, o.key), stricter},
		{"root and a list", of(o.a.Root, list), taken},
		{"root and a broken list", of(o.a.Root, pemOf("X509 CRL", []byte{1})), refusing},
		{"root and a request", of(o.a.Root, pemOf("CERTIFICATE REQUEST", []byte{1})), taken},
		{"lists", with([]byte("x\n"), list, ofOther, []byte("y\n")), taken},
		{"list of the first version", with(firstVersion(o.t, list)), taken},
		{"list that has expired", with(o.a.Revoke(o.t, past)), taken},
		{"list and a root", with(list, o.a.Root), stricter},
		{"list, then half of one", with(list, list[:len(list)/2]), refusing},
		{"broken list", with(pemOf("X509 CRL", []byte{1})), refusing},
		{"list with headers", with(withHeaders(list, "a", "b")), refusing},
		{"list in DER", with(derOf(list)), stricter},
		{"list called otherwise", with(pemOf("CRL", derOf(list))), stricter},
	}
}

// firstVersion is a list of revoked certificates as openssl makes it unless it is told to add extensions.
func firstVersion(t *testing.T, list []byte) []byte {
	t.Helper()
	var whole struct{ List, Algorithm, Signature asn1.RawValue }
	if _, err := asn1.Unmarshal(derOf(list), &whole); err != nil {
		t.Fatal(err)
	}
	var fields []asn1.RawValue
	for rest := whole.List.Bytes; len(rest) > 0; {
		var field asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &field); err != nil {
			t.Fatal(err)
		}
		if field.Class != asn1.ClassContextSpecific { // not the extensions
			fields = append(fields, field)
		}
	}
	text, err := asn1.Marshal(fields[1:]) // without the version
	if err != nil {
		t.Fatal(err)
	}
	whole.List = asn1.RawValue{FullBytes: text}
	der, err := asn1.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("X509 CRL", der)
}

// TestSecretsAreJudgedAsByEnvoy has a live Envoy judge odd Secrets: it takes all that pilotd sends, and refuses what
// pilotd does not send, except where pilotd is stricter by intent.
func TestSecretsAreJudgedAsByEnvoy(t *testing.T) {
	o := newOddities(t)
	good := sent(t, o.behind(), "kubernetes://a")
	var all []*tlspb.DownstreamTlsContext
	for resource, odd := range map[string][]oddSecret{"kubernetes://a-cacert": o.roots(),
		"kubernetes://a": append(append(o.keys(), o.chains()...), o.staples()...)} {
		for _, s := range odd {
			secret := sent(t, s.data, resource)
			if (secret != nil) != (s.want == taken) {
				t.Errorf("%s: pilotd sends it: %v", s.name, secret != nil)
			}
			if secret != nil {
				all = append(all, serving(good, secret))
				continue
			}
			err := parts.Validate(t, listening(t, serving(good, unread(s.data, resource))))
			if (err == nil) != (s.want == stricter) {
				t.Errorf("%s: Envoy says %v", s.name, err)
			}
		}
	}
	if err := parts.Validate(t, listening(t, all...)); err != nil {
		t.Errorf("of %d that are sent Envoy refuses one: %v", len(all), err)
	}
}

// sent returns what a proxy is sent that asks for a Secret by a resource's name; nil for nothing.
func sent(t *testing.T, d secrets.Data, resource string) *tlspb.Secret {
	t.Helper()
	store := secrets.New(secrets.Options{Now: time.Now, Every: func(time.Duration) <-chan time.Time { return nil }})
	files := secrets.NewFiles(store)
	files.Set(secrets.Object{Namespace: "shop", Name: "a"}, d)
	files.Ready()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { store.Run(ctx) })
	running.Go(func() { files.Run(ctx) })
	who := identity.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "edge"}
	known := make(chan struct{}, 1)
	view := store.Open(who, chunked.New([]chunked.Item[struct{}]{{Key: resource}}), nil, func() {
		select {
		case known <- struct{}{}:
		default:
		}
	})
	defer view.Close()
	<-known
	section, ok := view.Resources()
	if !ok {
		t.Fatal("it is not known whether there is a Secret")
	}
	entry, ok := section.Get(resource)
	if !ok {
		return nil
	}
	out := &tlspb.Secret{}
	if err := proto.Unmarshal(entry.Message(), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// unread is what Envoy would be sent if nobody looked at a Secret before.
func unread(d secrets.Data, resource string) *tlspb.Secret {
	inline := func(b []byte) *corepb.DataSource {
		if b == nil {
			return nil
		}
		return &corepb.DataSource{Specifier: &corepb.DataSource_InlineBytes{InlineBytes: b}}
	}
	if resource == "kubernetes://a" {
		return &tlspb.Secret{Type: &tlspb.Secret_TlsCertificate{TlsCertificate: &tlspb.TlsCertificate{
			CertificateChain: inline(d["tls.crt"]), PrivateKey: inline(d["tls.key"]), OcspStaple: inline(d["tls.ocsp-staple"])}}}
	}
	return &tlspb.Secret{Type: &tlspb.Secret_ValidationContext{ValidationContext: &tlspb.CertificateValidationContext{
		TrustedCa: inline(d["ca.crt"]), Crl: inline(d["ca.crl"])}}}
}

// serving is a server with a secret: its certificate, or the roots beside a good certificate.
func serving(good, secret *tlspb.Secret) *tlspb.DownstreamTlsContext {
	common := &tlspb.CommonTlsContext{TlsCertificates: []*tlspb.TlsCertificate{secret.GetTlsCertificate()}}
	if roots := secret.GetValidationContext(); roots != nil {
		common.TlsCertificates[0] = good.GetTlsCertificate()
		common.ValidationContextType = &tlspb.CommonTlsContext_ValidationContext{ValidationContext: roots}
	}
	return &tlspb.DownstreamTlsContext{CommonTlsContext: common}
}

// listening is an Envoy with these servers, each for a name of its own.
func listening(t *testing.T, servers ...*tlspb.DownstreamTlsContext) *bootstrappb.Bootstrap {
	t.Helper()
	l := &listenerpb.Listener{Name: "l", Address: &corepb.Address{Address: &corepb.Address_SocketAddress{
		SocketAddress: &corepb.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corepb.SocketAddress_PortValue{}}}}}
	for i, server := range servers {
		packed, err := anypb.New(server)
		if err != nil {
			t.Fatal(err)
		}
		l.FilterChains = append(l.FilterChains, &listenerpb.FilterChain{
			FilterChainMatch: &listenerpb.FilterChainMatch{ServerNames: []string{fmt.Sprint("n", i, ".example.com")}},
			TransportSocket: &corepb.TransportSocket{Name: "envoy.transport_sockets.tls",
				ConfigType: &corepb.TransportSocket_TypedConfig{TypedConfig: packed}}})
	}
	return &bootstrappb.Bootstrap{StaticResources: &bootstrappb.Bootstrap_StaticResources{
		Listeners: []*listenerpb.Listener{l}}}
}
