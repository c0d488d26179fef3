package e2e_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/xdstype"
)

// weakCSR is a request for an RSA key of 1024 bits, by openssl.
const weakCSR = `-----BEGIN CERTIFICATE REQUEST-----
MIIBPzCBqQIBADAAMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDZ0oj8iZvk
W5T/7+HmUxE4UI4Ui6fra3tYtVn4QTo7hik5UUI1zz6gVt0GNxLu1fym93EohNlh
BGnCoWm6/FEnittMJI4ISAXaXcfahMApl++FKXr9C8na+vBWk05bDiw++FNYWAoT
16y9bq8VmRArqbxsKN/Wga2iaBXS3NtIMwIDAQABoAAwDQYJKoZIhvcNAQELBQAD
gYEAgWVKPQvRJrWlAOtjk1Ih13FZHXb8JOfPRmLaIIq87W7BgfClrbk9Y61QJ81+
ccWR59lCbGnwjtPn0/jgylx+2YMCJxy6r3M07zM5drAYHfXkV4sc/Bh6/v/uAYxz
49egk6Nvaq7suBiUgZT1wHS9xajVtnyFUlbDbLRiPSR6efQ=
-----END CERTIFICATE REQUEST-----
`

// callers is pilotd at the port where callers prove who they are, with an authority whose key the test has, an issuer
// of tokens besides the API server, and agents of nodes.
type callers struct {
	t         *testing.T
	cluster   *parts.Cluster
	pilotd    *parts.Pilotd
	root      *signer
	issuer    issuer
	issuerURL string
	before    map[string]float64 // what was counted at the last look
}

func newCallers(t *testing.T) *callers {
	c := &callers{t: t, root: newSigner(t, nil, "root"), issuer: newIssuer(t)}
	testnet.New(t)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
			_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, c.issuerURL, c.issuerURL+"/keys")
			return
		}
		_, _ = io.WriteString(w, c.issuer.keys(t))
	}))
	t.Cleanup(pages.Close)
	c.issuerURL = pages.URL
	c.cluster = parts.NewCluster(t, parts.StartAPIServer(t))
	account := func(namespace, name string) string {
		return fmt.Sprintf(`
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s, namespace: %s}}
`, name, namespace)
	}
	onNode := func(name, node string) string {
		return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: shop}
spec: {nodeName: %[2]s, serviceAccountName: %[1]s, containers: [{name: app, image: app}]}
`, name, node)
	}
	c.cluster.Apply(namespaces() + c.root.plugged(t, c.root) + account("shop", "web") + account("shop", "gone") +
		account("shop", "agent") + onNode("agent", "n1") + onNode("near", "n1") + onNode("far", "n2") + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "trustDomainAliases: [old.local]"}
`)
	sources := c.cluster.Sources()
	sources.Flags = []string{"--secureGRPCAddr=" + testnet.Host + ":15012"}
	sources.Env = []string{"CA_TRUSTED_NODE_ACCOUNTS=shop/agent",
		fmt.Sprintf(`JWT_RULE={"issuer": %q, "audiences": ["istio-ca"]}`, c.issuerURL)}
	c.pilotd = parts.StartPilotd(t, sources)
	return c
}

// web is whom good callers have proven to be.
const web = "spiffe://cluster.local/ns/shop/sa/web"

// shown is what a caller shows.
type shown struct {
	cert      *tls.Certificate
	token     string
	cluster   string
	namespace string // that it claims; shop when empty
	account   string // that it claims; web when empty
}

// certificate returns one of a client, signed by who is given.
func (c *callers) certificate(by *signer, life time.Duration, usage x509.ExtKeyUsage,
	names ...string) *tls.Certificate {
	c.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}}
	for _, n := range names {
		u, err := url.Parse(n)
		if err != nil {
			c.t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	key := newECKey(c.t)
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, by.cert.Raw}, PrivateKey: key}
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request returns a request for a certificate with a name.
func request(t *testing.T, key crypto.Signer, name string) string {
	t.Helper()
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{u}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// dial connects, and returns the context of calls.
func (c *callers) dial(s shown) (*grpc.ClientConn, context.Context) {
	c.t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(c.root.cert)
	cfg := &tls.Config{ServerName: "istiod.istio-system.svc", RootCAs: pool}
	if s.cert != nil { // whatever the server says whom it trusts
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.cert, nil }
	}
	conn, err := grpc.NewClient(c.pilotd.SecureAddress(), grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
	if err != nil {
		c.t.Fatal(err)
	}
	md := metadata.MD{}
	if s.token != "" {
		md.Set("authorization", "Bearer "+s.token)
	}
	if s.cluster != "" {
		md.Set("clusterid", s.cluster)
	}
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(c.t.Context(), md), time.Minute)
	c.t.Cleanup(func() { cancel(); conn.Close() })
	return conn, ctx
}

// node is what a caller says of itself.
func (s shown) node() *corev3.Node {
	namespace, account := s.namespace, s.account
	if namespace == "" {
		namespace = "shop"
	}
	if account == "" {
		account = "web"
	}
	md, _ := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "SERVICE_ACCOUNT": account})
	return &corev3.Node{Id: "sidecar~10.244.1.9~web-1." + namespace + "~" + namespace + ".svc.cluster.local", Metadata: md}
}

// streams returns the codes with which both kinds of streams of configuration begin or end.
func (c *callers) streams(s shown) (delta, sotw codes.Code) {
	c.t.Helper()
	conn, ctx := c.dial(s)
	defer conn.Close()
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	d, err := client.DeltaAggregatedResources(ctx)
	if err == nil {
		if err = d.Send(&discoveryv3.DeltaDiscoveryRequest{Node: s.node(), TypeUrl: xdstype.ClusterURL}); err == nil ||
			errors.Is(err, io.EOF) { // Recv says why
			_, err = d.Recv()
		}
	}
	delta = status.Code(err)
	w, err := client.StreamAggregatedResources(ctx)
	if err == nil {
		if err = w.Send(&discoveryv3.DiscoveryRequest{Node: s.node(), TypeUrl: xdstype.ClusterURL}); err == nil ||
			errors.Is(err, io.EOF) {
			_, err = w.Recv()
		}
	}
	return delta, status.Code(err)
}

// sign asks for a certificate, in somebody's name unless that is empty, and returns the name that it has.
func (c *callers) sign(s shown, csr, as string) (name string, err error) {
	c.t.Helper()
	conn, ctx := c.dial(s)
	defer conn.Close()
	r := &securityv1.IstioCertificateRequest{Csr: csr, ValidityDuration: 600}
	if as != "" {
		r.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{
			"ImpersonatedIdentity": structpb.NewStringValue(as)}}
	}
	got, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, r)
	if err != nil {
		return "", err
	}
	b, _ := pem.Decode([]byte(got.CertChain[0]))
	leaf, err := x509.ParseCertificate(b.Bytes)
	if err != nil || len(leaf.URIs) != 1 || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) != 0 {
		c.t.Fatal(leaf, err)
	}
	return leaf.URIs[0].String(), nil
}

// counted returns by how much a counter has grown since the last look at it.
func (c *callers) counted(name string) float64 {
	c.t.Helper()
	page, err := c.pilotd.Debug("/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	if c.before == nil {
		c.before = map[string]float64{}
	}
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			if _, err := fmt.Sscan(text, &v); err != nil {
				c.t.Fatal(line, err)
			}
			grown := v - c.before[name]
			c.before[name] = v
			return grown
		}
	}
	c.t.Fatalf("nobody counts %s", name)
	return 0
}

func refusedFor(reason string) string {
	return fmt.Sprintf("pilotd_authentication_failures_total{reason=%q}", reason)
}

func ended(outcome string) string {
	return fmt.Sprintf("pilotd_certificate_requests_total{outcome=%q}", outcome)
}

// TestHostileCallers has raw clients come to the port with TLS with what proves nothing, or somebody else, for streams
// of both kinds and for certificates: each is refused with the code that says so, and counted.
func TestHostileCallers(t *testing.T) {
	c := newCallers(t)
	good := c.cluster.Token("shop", "web")
	gone := c.cluster.Token("shop", "gone")
	c.cluster.Delete("{apiVersion: v1, kind: ServiceAccount, metadata: {name: gone, namespace: shop}}")
	const client, server = x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	stranger := newSigner(t, nil, "root") // of the same name
	issued := func(claims map[string]any) string {
		all := map[string]any{"iss": c.issuerURL, "sub": "system:serviceaccount:shop:web", "aud": "istio-ca"}
		for k, v := range claims {
			all[k] = v
		}
		return c.issuer.token(t, all)
	}
	key := newECKey(t)
	csr := request(t, key, "spiffe://cluster.local/ns/bank/sa/teller") // the name is somebody else's, always

	for name, s := range map[string]shown{
		"a certificate":          {cert: c.certificate(c.root, time.Hour, client, web)},
		"of an alias":            {cert: c.certificate(c.root, time.Hour, client, "spiffe://old.local/ns/shop/sa/web")},
		"a token of the cluster": {token: good},
		"a token of the issuer":  {token: issued(nil), cluster: "elsewhere"},
		"one of two audiences":   {token: issued(map[string]any{"aud": []string{"x", "istio-ca"}})},
	} {
		if delta, sotw := c.streams(s); delta != codes.OK || sotw != codes.OK {
			t.Errorf("%s: %s, %s", name, delta, sotw)
		}
		want := web
		if name == "of an alias" {
			want = strings.Replace(web, "cluster", "old", 1)
		}
		if got, err := c.sign(s, csr, ""); got != want {
			t.Errorf("%s: a certificate of %q, %v", name, got, err)
		}
	}
	if n := c.counted(ended("issued")); n != 5 {
		t.Errorf("%v certificates are counted", n)
	}

	for _, r := range []struct {
		name   string
		shown  shown
		reason string
	}{
		{"nothing", shown{}, "missing"},
		{"an expired certificate", shown{cert: c.certificate(c.root, -time.Hour, client, web)}, "expired"},
		{"an expired certificate and a good token", shown{cert: c.certificate(c.root, -time.Hour, client, web), token: good},
			"expired"},
		{"a certificate of another authority", shown{cert: c.certificate(stranger, time.Hour, client, web)}, "certificate"},
		{"a certificate of somebody below that", shown{cert: c.certificate(newSigner(t, stranger, "below"), time.Hour,
			client, web)}, "certificate"},
		{"a server's certificate", shown{cert: c.certificate(c.root, time.Hour, server, web)}, "certificate"},
		{"another trust domain", shown{cert: c.certificate(c.root, time.Hour, client, "spiffe://evil/ns/shop/sa/web")},
			"trust_domain"},
		{"two names", shown{cert: c.certificate(c.root, time.Hour, client, web, "spiffe://cluster.local/ns/bank/sa/teller")},
			"malformed"},
		{"no name", shown{cert: c.certificate(c.root, time.Hour, client)}, "malformed"},
		{"a name of more parts", shown{cert: c.certificate(c.root, time.Hour, client, web+"/x")}, "malformed"},
		{"a token that is none", shown{token: "x"}, "token"},
		{"a forged token", shown{token: cutOff(good)}, "token"},
		{"a token of an account that is gone", shown{token: gone}, "token"},
		{"a token for another audience", shown{token: c.cluster.TokenFor("vault", "shop", "web")}, "audience"},
		{"a token of another cluster", shown{token: good, cluster: "elsewhere"}, "cluster"},
		{"a token of an unknown issuer", shown{token: newIssuer(t).token(t, map[string]any{"aud": "istio-ca"})}, "token"},
		{"an issuer's token that has expired", shown{token: issued(map[string]any{"exp": 1})}, "expired"},
		{"an issuer's token for another audience", shown{token: issued(map[string]any{"aud": "x"})}, "audience"},
		{"an issuer's token of a person", shown{token: issued(map[string]any{"sub": "bob"})}, "token"},
		{"an issuer's token that somebody else has signed", shown{token: newIssuer(t).token(t, map[string]any{
			"iss": c.issuerURL, "sub": "system:serviceaccount:shop:web", "aud": "istio-ca"})}, "token"},
		{"a token without end", shown{token: strings.Repeat("x", 8193)}, "malformed"},
	} {
		c.counted(refusedFor(r.reason))
		c.counted(ended("unauthenticated"))
		c.counted(`pilotd_xds_streams_refused{reason="identity"}`)
		if delta, sotw := c.streams(r.shown); delta != codes.Unauthenticated || sotw != codes.Unauthenticated {
			t.Errorf("%s: streams end with %s, %s", r.name, delta, sotw)
		}
		if _, err := c.sign(r.shown, csr, ""); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: a certificate: %v", r.name, err)
		}
		if n, streams, calls := c.counted(refusedFor(r.reason)), c.counted(`pilotd_xds_streams_refused{reason="identity"}`),
			c.counted(ended("unauthenticated")); n != 3 || streams != 2 || calls != 1 {
			t.Errorf("%s: counted are %v for %s, %v streams, %v calls", r.name, n, r.reason, streams, calls)
		}
	}
	t.Run("claims", func(t *testing.T) { c.claims(good) })
	t.Run("requests for certificates", func(t *testing.T) { c.badRequests(good, key) })
	t.Run("agents of nodes", func(t *testing.T) { c.nodeAgents(csr, good) })
}

// claims are of callers that have proven who they are, and say that they are somebody else.
func (c *callers) claims(token string) {
	cert := c.certificate(c.root, time.Hour, x509.ExtKeyUsageClientAuth, web)
	for name, s := range map[string]shown{
		"a token of another namespace":       {token: token, namespace: "bank"},
		"a token of another account":         {token: token, account: "admin"},
		"a certificate of another namespace": {cert: cert, namespace: "bank"},
	} {
		c.counted(`pilotd_xds_streams_refused{reason="identity"}`)
		if delta, sotw := c.streams(s); delta != codes.PermissionDenied || sotw != codes.PermissionDenied {
			c.t.Errorf("%s: %s, %s", name, delta, sotw)
		}
		if n := c.counted(`pilotd_xds_streams_refused{reason="identity"}`); n != 2 {
			c.t.Errorf("%s: %v are counted", name, n)
		}
	}
}

// badRequests are of a caller that has proven who it is.
func (c *callers) badRequests(token string, key crypto.Signer) {
	good := request(c.t, key, web)
	rubbish := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("rubbish")}))
	for name, r := range map[string]struct {
		csr  string
		code codes.Code
	}{
		"nothing":          {"", codes.InvalidArgument},
		"no PEM":           {"MIIB", codes.InvalidArgument},
		"PEM of rubbish":   {rubbish, codes.InvalidArgument},
		"a weak key":       {weakCSR, codes.InvalidArgument},
		"two requests":     {good + good, codes.InvalidArgument},
		"somebody's key":   {tampered(c.t, good), codes.InvalidArgument},
		"a request of 1 M": {good + strings.Repeat("\n", 1<<20), codes.ResourceExhausted},
	} {
		c.counted(ended("malformed"))
		if _, err := c.sign(shown{token: token}, r.csr, ""); status.Code(err) != r.code {
			c.t.Errorf("%s: %v", name, err)
		}
		if n := c.counted(ended("malformed")); n != 1 {
			c.t.Errorf("%s: %v are counted", name, n)
		}
	}
}

// tampered returns a request whose signature is another one's.
func tampered(t *testing.T, csr string) string {
	t.Helper()
	b, _ := pem.Decode([]byte(csr))
	b.Bytes[len(b.Bytes)-1] ^= 1
	return string(pem.EncodeToMemory(b))
}

// nodeAgents ask in the name of others.
func (c *callers) nodeAgents(csr, token string) {
	agent := shown{token: c.cluster.PodToken("shop", "agent", "agent")}
	own := c.certificate(c.root, time.Hour, x509.ExtKeyUsageClientAuth, "spiffe://cluster.local/ns/shop/sa/agent")
	of := func(account string) string { return "spiffe://cluster.local/ns/shop/sa/" + account }
	parts.Eventually(c.t, "an agent gets a certificate of a pod on its node", func() error {
		got, err := c.sign(agent, csr, of("near"))
		if err == nil && got != of("near") {
			err = fmt.Errorf("the name is %q", got)
		}
		return err
	})
	for name, r := range map[string]struct {
		shown shown
		as    string
	}{
		"of a pod of another node":                   {agent, of("far")},
		"of no pod":                                  {agent, of("web")},
		"of another namespace":                       {agent, "spiffe://cluster.local/ns/bank/sa/near"},
		"by one that is no agent":                    {shown{token: token}, of("near")},
		"by an agent's account of no pod":            {shown{token: c.cluster.Token("shop", "agent")}, of("near")},
		"by an agent's certificate, which is no pod": {shown{cert: own}, of("near")},
	} {
		c.counted(ended("denied"))
		if _, err := c.sign(r.shown, csr, r.as); status.Code(err) != codes.PermissionDenied {
			c.t.Errorf("%s: %v", name, err)
		}
		if n := c.counted(ended("denied")); n != 1 {
			c.t.Errorf("%s: %v are counted", name, n)
		}
	}
	if _, err := c.sign(agent, csr, "spiffe://evil/ns/shop/sa/near"); status.Code(err) != codes.InvalidArgument {
		c.t.Errorf("of another trust domain: %v", err)
	}
}
