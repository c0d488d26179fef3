package secure

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/xdstype"
)

// Names of types that agents ask for and that are not Envoy's.
const (
	proxyConfig = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig"
	extension   = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	health      = "type.googleapis.com/istio.v1.HealthInformation"
)

// TestAgent is a stock agent with a scripted Envoy behind it, row by row: what it asks, in which form, and what it
// needs.
func TestAgent(t *testing.T) {
	for name, row := range map[string]func(*house){
		"it knows the server by its name and root":          agentKnowsServer,
		"TLS is 1.2 or 1.3, HTTP/2, and never resumed":      agentTLS,
		"its token is its identity, anew for each stream":   agentToken,
		"a machine outside the cluster shows a certificate": agentCertificate,
		"a certificate: leaf first, root last":              agentCSR,
		"answers of the CA are codes it can act on":         agentFailures,
		"a cold start of a sidecar":                         agentColdStart,
		"a gateway asks for routes and secrets together":    agentGateway,
		"a reconnect brings all types in one burst":         agentReconnect,
		"it pings every 30 s":                               agentPings,
		"it refuses a type that it never asked for":         agentRefuses,
		"it may claim what it has proven":                   agentClaims,
		"its namespace may be that of its domain":           agentNamespace,
		"its first request is large":                        agentFirstRequest,
		"each name that it asks for is answered":            agentNames,
		"it comes back for endpoints alone":                 agentEndpointsAlone,
		"it wants the whole name table on each stream":      agentNameTable,
		"it tells that its application is not well":         agentHealth,
		"it speaks State of the World":                      agentStateOfTheWorld,
	} {
		t.Run(name, func(t *testing.T) { inHouse(t, row) })
	}
}

// node returns the node of an agent's Envoy.
func node(kind, namespace, account string) *corev3.Node {
	md, _ := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "SERVICE_ACCOUNT": account,
		"CLUSTER_ID": "Kubernetes", "DNS_CAPTURE": "true"})
	return &corev3.Node{Id: kind + "~10.1.0.1~app-1." + namespace + "~" + namespace + ".svc.cluster.local", Metadata: md}
}

// stream is an ADS stream of an agent.
type stream struct {
	h *house
	grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
	conn   *grpc.ClientConn
	cancel func()
}

// open opens a stream, on a connection of its own.
func (h *house) open(token string, a agent) *stream {
	h.t.Helper()
	conn := h.dial(a)
	ctx, cancel := context.WithTimeout(with(token), time.Hour) // what is never answered ends
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return &stream{h, s, conn, cancel}
}

func (s *stream) close() { s.cancel(); _ = s.conn.Close() }

// send sends a request. Of a stream that the server has ended already, Recv says why.
func (s *stream) send(r *discoveryv3.DeltaDiscoveryRequest) {
	s.h.t.Helper()
	if err := s.Send(r); err != nil && !errors.Is(err, io.EOF) {
		s.h.t.Fatal(err)
	}
}

// next returns the next response, which is of this type; it is ACKed.
func (s *stream) next(url string) *discoveryv3.DeltaDiscoveryResponse {
	s.h.t.Helper()
	r, err := s.Recv()
	if err != nil || r.TypeUrl != url {
		s.h.t.Fatalf("%s, %v; want %s", r.GetTypeUrl(), err, url)
	}
	s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: r.Nonce})
	return r
}

// acknowledgesUntil ACKs responses, each after look has seen it, until one of this type has come. The stream must stay.
func (s *stream) acknowledgesUntil(url string, look func(*discoveryv3.DeltaDiscoveryResponse)) {
	s.h.t.Helper()
	for come := ""; come != url; {
		r, err := s.Recv()
		if err != nil {
			s.h.t.Fatal(err)
		}
		look(r)
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce})
		come = r.TypeUrl
	}
	synctest.Wait()
	if s.h.streams.Streams.Streams() != 1 {
		s.h.t.Error("the stream ended")
	}
}

// ends fails unless the stream ends with the code.
func (s *stream) ends(code codes.Code) {
	s.h.t.Helper()
	defer s.close()
	if r, err := s.Recv(); status.Code(err) != code {
		s.h.t.Errorf("%v, %v; want %s", r.GetTypeUrl(), err, code)
	}
}

// begins fails unless a stream with the token is answered.
func (h *house) begins(token string, n *corev3.Node, a agent) {
	h.t.Helper()
	s := h.open(token, a)
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
}

func agentKnowsServer(h *house) {
	web := node("sidecar", "shop", "web")
	for _, host := range []string{"istiod.istio-system.svc", "istio-pilot.istio-system.svc"} {
		h.begins("web", web, agent{host: host})
	}
	for name, a := range map[string]agent{"wrong name": {host: "istiod.other.svc"},
		"wrong root": {roots: newRoot(h.t, "other").pem}} {
		conn := h.dial(a)
		_, err := certificate(conn, with("web"), "x")
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "certificate") {
			h.t.Error(name, err)
		}
		conn.Close()
	}
}

func agentTLS(h *house) {
	for _, v := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
		raw, err := h.listener.Dial()
		if err != nil {
			h.t.Fatal(err)
		}
		cache := tls.NewLRUClientSessionCache(1)
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: v, MaxVersion: v,
			NextProtos: []string{"h2"}, ClientSessionCache: cache, ServerName: "istiod.istio-system.svc"})
		err = conn.Handshake()
		if (err == nil) != (v >= tls.VersionTLS12) {
			h.t.Errorf("version %x: %v", v, err)
		}
		if err == nil && conn.ConnectionState().NegotiatedProtocol != "h2" {
			h.t.Error("the protocol is", conn.ConnectionState().NegotiatedProtocol)
		}
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // takes session tickets, if there are any
		}
		if session, ok := cache.Get("istiod.istio-system.svc"); ok && session != nil {
			h.t.Errorf("version %x: a session can be resumed", v)
		}
		conn.Close()
	}
}

func agentToken(h *house) {
	h.begins("web", node("sidecar", "shop", "web"), agent{})
	h.begins("teller", node("sidecar", "bank", "teller"), agent{}) // the next stream has another one
	for name, md := range map[string][]string{"none": nil, "unknown": {"authorization", "Bearer stolen"},
		"another scheme":  {"authorization", "Basic web"},
		"another cluster": {"authorization", "Bearer web", "clusterid", "elsewhere"}} {
		conn := h.dial(agent{})
		ctx := metadata.NewOutgoingContext(h.t.Context(), metadata.Pairs(md...))
		s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := s.Recv(); status.Code(err) != codes.Unauthenticated {
			h.t.Error(name, err)
		}
		if _, err := certificate(conn, ctx, "x"); status.Code(err) != codes.Unauthenticated {
			h.t.Error(name, err)
		}
		conn.Close()
	}
}

func agentCertificate(h *house) {
	web := node("sidecar", "shop", "web")
	const id = "spiffe://cluster.local/ns/shop/sa/web"
	h.begins("", web, agent{cert: h.root.client(h.t, id, time.Hour)})
	for _, c := range []struct {
		name string
		cert *tls.Certificate
		code codes.Code
	}{
		{"expired", h.root.client(h.t, id, -time.Minute), codes.Unauthenticated},
		{"of a stranger", newRoot(h.t, "root").client(h.t, id, time.Hour), codes.Unauthenticated},
		{"of another trust domain", h.root.client(h.t, "spiffe://evil/ns/shop/sa/web", time.Hour), codes.Unauthenticated},
		{"of another namespace", h.root.client(h.t, "spiffe://cluster.local/ns/bank/sa/web", time.Hour),
			codes.PermissionDenied},
	} {
		s := h.open("web", agent{cert: c.cert}) // a good token does not mend it
		s.send(&discoveryv3.DeltaDiscoveryRequest{Node: web, TypeUrl: xdstype.ClusterURL})
		s.ends(c.code)
	}
	// The certificate that the authority gives proves the same as the token did.
	key := newKey(h.t)
	conn := h.dial(agent{})
	defer conn.Close()
	chain, err := certificate(conn, with("web"), csr(h.t, key, id))
	if err != nil {
		h.t.Fatal(err)
	}
	b, _ := pem.Decode([]byte(chain[0]))
	h.begins("", web, agent{cert: &tls.Certificate{Certificate: [][]byte{b.Bytes}, PrivateKey: key}})
}

// csr returns a request as agents make it: a subject with one empty O, one critical name.
func csr(t testing.TB, key crypto.Signer, name string) string {
	t.Helper()
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	names, err := asn1.Marshal([]asn1.RawValue{{Tag: 6, Class: 2, Bytes: []byte(u.String())}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{""}}, ExtraExtensions: []pkix.Extension{{
			Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: names}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func agentCSR(h *house) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		h.t.Fatal(err)
	}
	conn := h.dial(agent{})
	defer conn.Close()
	var first peer.Peer
	for i, name := range []string{"spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/bank/sa/teller",
		"spiffe://cluster.local/ns/shop/sa/"} { // the last where SERVICE_ACCOUNT was empty
		var from peer.Peer
		chain, err := certificate(conn, with("web"), csr(h.t, key, name), grpc.Peer(&from))
		if err != nil {
			h.t.Fatal(err)
		}
		if len(chain) < 2 || chain[len(chain)-1] != string(h.root.pem) {
			h.t.Error("the root is not last:", chain)
		}
		b, _ := pem.Decode([]byte(chain[0]))
		leaf, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			h.t.Fatal(err)
		}
		if !key.PublicKey.Equal(leaf.PublicKey) || leaf.URIs[0].String() != "spiffe://cluster.local/ns/shop/sa/web" {
			h.t.Error("the leaf is for", leaf.URIs)
		}
		if life := time.Until(leaf.NotAfter); life != 24*time.Hour {
			h.t.Error("it is good for", life)
		}
		if i == 0 {
			first = from
		} else if first.Addr != from.Addr {
			h.t.Error("the connection was not kept")
		}
	}
}

// certificate asks for one as agents do: for a day, with an empty CertSigner.
func certificate(conn *grpc.ClientConn, ctx context.Context, text string, o ...grpc.CallOption) ([]string, error) {
	r, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, &securityv1.IstioCertificateRequest{
		Csr: text, ValidityDuration: 86400, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"CertSigner": structpb.NewStringValue("")}}}, o...)
	return r.GetCertChain(), err
}

// agentFailures: an agent tries again soon on Unavailable, and once on what will not get better.
func agentFailures(h *house) {
	conn := h.dial(agent{})
	defer conn.Close()
	if _, err := certificate(conn, with("web"), "no PEM"); status.Code(err) != codes.InvalidArgument {
		h.t.Error(err)
	}
	if _, err := certificate(conn, with("stolen"), "x"); status.Code(err) != codes.Unauthenticated {
		h.t.Error(err)
	}
	if n := h.secure.service.Outcomes()[ca.Unauthenticated]; n != 1 || h.secure.refused[6].Load() != 1 {
		h.t.Error("it is not counted")
	}
	// A caller that never sends its request is answered: no path hangs.
	s, err := conn.NewStream(with("web"), &grpc.StreamDesc{ClientStreams: true},
		"/istio.v1.auth.IstioCertificateService/CreateCertificate")
	if err != nil {
		h.t.Fatal(err)
	}
	begin := time.Now()
	if err := s.RecvMsg(&securityv1.IstioCertificateResponse{}); status.Code(err) != codes.DeadlineExceeded {
		h.t.Error(err)
	}
	if d := time.Since(begin); d > 30*time.Second {
		h.t.Error("it was answered after", d)
	}
	// One that sends too much is told before it has sent it.
	if _, err := certificate(conn, with("web"), strings.Repeat("x", ca.MaxRequest)); status.Code(err) !=
		codes.ResourceExhausted {
		h.t.Error(err)
	}
}

func agentColdStart(h *house) {
	s := h.open("web", agent{})
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
	for _, url := range []string{xdstype.ListenerURL, xdstype.NameTableURL, proxyConfig, health} { // in the same instant
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url})
	}
	s.acknowledgesUntil(xdstype.ListenerURL, func(r *discoveryv3.DeltaDiscoveryResponse) { // the name table may come first
		if r.TypeUrl != xdstype.ListenerURL && r.TypeUrl != xdstype.NameTableURL || len(r.Resources) == 0 {
			h.t.Error("an answer that is never ACKed:", r.TypeUrl, len(r.Resources))
		}
	})
}

func agentGateway(h *house) {
	s := h.open("gateway", agent{})
	defer s.close()
	n := node("router", "istio-system", "gateway")
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
	s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ListenerURL})
	s.next(xdstype.ListenerURL)
	for url, name := range map[string]string{xdstype.RouteURL: "http.80", xdstype.SecretURL: "kubernetes://web-cert"} {
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: []string{name}})
	}
	// a name that nobody has is removed
	s.acknowledgesUntil(xdstype.RouteURL, func(r *discoveryv3.DeltaDiscoveryResponse) {
		if len(r.RemovedResources)+len(r.Resources) != 1 {
			h.t.Fatal(r)
		}
	})
}

func agentReconnect(h *house) {
	n := node("sidecar", "shop", "web")
	h.begins("web", n, agent{})
	s := h.open("web", agent{})
	defer s.close()
	had := map[string]string{"outbound|80||gone.shop.svc.cluster.local": ""} // istiod's versions are empty
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: xdstype.ClusterURL, InitialResourceVersions: had})
	for _, r := range []*discoveryv3.DeltaDiscoveryRequest{
		{TypeUrl: xdstype.ListenerURL, InitialResourceVersions: map[string]string{"virtualOutbound": ""}},
		{TypeUrl: xdstype.NameTableURL},
	} {
		s.send(r)
	}
	r := s.next(xdstype.ClusterURL)
	if len(r.Resources) == 0 {
		h.t.Error("it is not told what there is")
	}
}

func agentPings(h *house) {
	s := h.open("web", agent{})
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
	time.Sleep(30 * time.Minute) // sixty of them
	if h.streams.Streams.Streams() != 1 {
		h.t.Fatal("the connection ended")
	}
	s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ListenerURL})
	s.next(xdstype.ListenerURL)
}

func agentRefuses(h *house) {
	s := h.open("web", agent{})
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
	for _, url := range []string{extension, xdstype.RouteURL, xdstype.NameTableURL} {
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: "none",
			ErrorDetail: &statuspb.Status{Code: 13, Message: "cannot decode"}})
	}
	s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ListenerURL})
	for {
		r, err := s.Recv()
		if err != nil {
			h.t.Fatal("the stream ended:", err)
		}
		if r.TypeUrl == xdstype.ListenerURL {
			return
		}
	}
}

func agentClaims(h *house) {
	for _, n := range []*corev3.Node{node("sidecar", "bank", "web"), node("sidecar", "shop", "admin"),
		node("router", "istio-system", "gateway")} {
		s := h.open("web", agent{})
		s.send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: xdstype.ClusterURL})
		s.ends(codes.PermissionDenied)
	}
	synctest.Wait() // a client may know of its end before it is counted
	if n := h.streams.Streams.Stats().Refused[9]; n != 3 {
		h.t.Errorf("%d are counted", n)
	}
	h.begins("web", node("sidecar", "shop", ""), agent{}) // SERVICE_ACCOUNT may be left out
}
