package secure

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/status"
	"github.com/pilotd/pilotd/xdstype"
)

// listers are the service accounts that may list Secrets.
type listers []string

// MayListSecrets implements secrets.Rights.
func (l listers) MayListSecrets(_ context.Context, who identity.Identity) (bool, error) {
	return slices.Contains(l, who.Namespace+"/"+who.ServiceAccount), nil
}

// gate is the gateways of many identities, and the Secrets that they ask for.
type gate struct {
	*house
	random *rand.Rand // nil: nothing is refused

	mu      sync.Mutex
	owners  map[string]string // the namespace of a key, by a part of it
	current map[string]string // a part of the key of each Secret, by namespace/name
	clients []*gateway
}

// gateway is one stream.
type gateway struct {
	*stream
	gate      *gate
	namespace string
	may       bool
	until     time.Time // when its proof ends

	// Guarded by the gate's mu.
	asked map[string]bool
	got   map[string]string // what it was sent last of each name, by a part of the key
	saw   int               // keys
}

// rotate gives a Secret another key.
func (g *gate) rotate(namespace, name string) {
	g.t.Helper()
	c := g.root.client(g.t, "spiffe://cluster.local/ns/x/sa/"+name, 1000*time.Hour)
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		g.t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	part := string(key[93:133]) // of the second line: the first is the same of all keys
	g.mu.Lock()
	g.owners[part], g.current[namespace+"/"+name] = namespace, part
	g.mu.Unlock()
	g.streams.Store.Apply([]ingest.Event{{Source: "test", Key: value.ObjectKey{Kind: value.KindSecret,
		Namespace: namespace, Name: name}, Object: &corev1.Secret{Data: map[string][]byte{"tls.crt": cert, "tls.key": key,
		"ca.crt": g.root.pem}}}})
}

// connect opens a stream of a service account; brief has it prove that for ten minutes only.
func (g *gate) connect(namespace, account string, brief bool) {
	g.t.Helper()
	life := 1000 * time.Hour
	if brief {
		life = 10 * time.Minute
	}
	c := &gateway{gate: g, namespace: namespace, may: account == "lister", until: time.Now().Add(life),
		asked: map[string]bool{}, got: map[string]string{}}
	c.stream = g.open("", agent{cert: g.root.client(g.t,
		"spiffe://cluster.local/ns/"+namespace+"/sa/"+account, life)})
	c.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("router", namespace, account), TypeUrl: xdstype.ClusterURL})
	g.clients = append(g.clients, c)
	go c.receive()
}

// receive takes what comes until the stream ends, and now and then refuses it.
func (c *gateway) receive() {
	for {
		r, err := c.Recv()
		if err != nil {
			return
		}
		answer := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
		if c.take(r) && c.gate.chance(8) {
			answer.ErrorDetail = &statuspb.Status{Code: int32(codes.InvalidArgument), Message: "bad: " + r.String()}
		}
		if c.Send(answer) != nil {
			return
		}
	}
}

func (g *gate) chance(of int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.random != nil && g.random.IntN(of) == 0
}

// take looks for keys in a response, and reports whether there are some.
func (c *gateway) take(r *discoveryv3.DeltaDiscoveryResponse) (some bool) {
	raw, err := proto.Marshal(r)
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	for part, owner := range c.gate.owners {
		if err == nil && !bytes.Contains(raw, []byte(part)) {
			continue
		}
		some = true
		if c.saw++; err != nil || owner != c.namespace || !c.may || !time.Now().Before(c.until) {
			c.gate.t.Errorf("a gateway of %s (may list: %v, proven until %v) has a key of %s: %v", c.namespace, c.may,
				c.until, owner, err)
		}
	}
	for _, resource := range r.Resources {
		s := &tlspb.Secret{}
		if resource.Resource.UnmarshalTo(s) != nil || s.GetTlsCertificate() == nil {
			continue
		}
		for part := range c.gate.owners {
			if bytes.Contains(s.GetTlsCertificate().GetPrivateKey().GetInlineBytes(), []byte(part)) {
				c.got[resource.Name] = part
			}
		}
	}
	for _, name := range r.RemovedResources {
		delete(c.got, name)
	}
	return some
}

// ask subscribes to a name of any namespace, in any form, or unsubscribes from one.
func (c *gateway) ask() {
	pick := func(of ...string) string { return of[c.gate.random.IntN(len(of))] }
	c.gate.mu.Lock()
	name := pick("kubernetes://a", "kubernetes://b", "kubernetes://"+pick("shop", "bank")+"/"+pick("a", "b", "none"),
		"kubernetes-gateway://"+pick("shop", "bank")+"/a", "configmap://shop/a") + pick("", "", "-cacert")
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL}
	if c.asked[name] && pick("yes", "no") == "yes" {
		r.ResourceNamesUnsubscribe = []string{name}
		delete(c.asked, name)
		delete(c.got, name)
	} else {
		r.ResourceNamesSubscribe = []string{name}
		c.asked[name] = true
	}
	c.gate.mu.Unlock()
	c.send(r)
}

// TestSecretsStayWithTheirReaders has gateways of many identities ask for the Secrets of all, while these change,
// certificates expire and responses are refused. No key ever reaches a gateway that may not have it, those that may
// have it get it, and no page, metric, profile or line of the log has one.
func TestSecretsStayWithTheirReaders(t *testing.T) {
	for seed := range uint64(3) {
		inHouse(t, func(h *house) {
			g := &gate{house: h, random: rand.New(rand.NewPCG(seed, 0)), owners: map[string]string{},
				current: map[string]string{}}
			g.play()
			g.settle()
			g.scan()
			for _, c := range g.clients {
				c.close()
			}
			synctest.Wait()
			if s := h.streams.Secrets.Stats(); s.Objects+s.Views != 0 {
				t.Errorf("left behind: %+v", s)
			}
		}, func(h *house) {
			h.rights = listers{"shop/lister", "bank/lister"}
		})
	}
}

// play does what gateways and people do.
func (g *gate) play() {
	for _, namespace := range []string{"shop", "bank"} {
		for _, name := range []string{"a", "b"} {
			g.rotate(namespace, name)
		}
	}
	for i := range 200 {
		g.mu.Lock()
		dice, space, account := g.random.IntN(10), []string{"shop", "bank"}[g.random.IntN(2)],
			[]string{"lister", "lister", "other"}[g.random.IntN(3)]
		which := g.random.IntN(len(g.clients) + 1)
		name := []string{"a", "b"}[g.random.IntN(2)]
		g.mu.Unlock()
		switch {
		case dice == 0 || i < 6:
			g.connect(space, account, i%4 == 3)
		case dice == 1:
			time.Sleep(time.Minute)
		case dice < 4:
			g.rotate(space, name)
		case which < len(g.clients):
			g.clients[which].ask()
		}
		synctest.Wait()
	}
}

// settle has every gateway ask for the same, and looks at what they have.
func (g *gate) settle() {
	for _, c := range g.clients {
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL,
			ResourceNamesSubscribe: []string{"kubernetes://a"}})
	}
	time.Sleep(time.Minute)
	g.rotate("shop", "a") // what was refused is tried again
	g.rotate("bank", "a")
	time.Sleep(time.Minute)
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	keys, expired := 0, 0
	for i, c := range g.clients {
		keys += c.saw
		switch current := g.current[c.namespace+"/a"]; {
		case !time.Now().Before(c.until):
			expired++
			if c.got["kubernetes://a"] == current {
				g.t.Errorf("gateway %d has a key from after its certificate has expired", i)
			}
		case c.may && c.got["kubernetes://a"] == "":
			g.t.Errorf("gateway %d of %s has none", i, c.namespace)
		}
	}
	if keys < 20 || expired == 0 {
		g.t.Errorf("%d keys were sent, %d certificates expired: that proves little", keys, expired)
	}
}

// scan looks for keys wherever people look.
func (g *gate) scan() {
	handler := status.Handler(g.streams.Metrics, status.Pages{Ready: g.streams.Ready, Debug: g.streams.Pages(),
		Access: status.Access{Anywhere: true}})
	seen := map[string]string{"the log": g.log.String()}
	paths := []string{"/metrics"}
	for page := range g.streams.Pages() {
		paths = append(paths, "/debug/"+page, "/debug/"+page+"?include_eds&proxyID=app-1.shop")
	}
	for _, path := range paths {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		seen[path] = w.Body.String()
	}
	for _, profile := range []string{"heap", "goroutine", "allocs"} {
		var b strings.Builder
		if err := pprof.Lookup(profile).WriteTo(&b, 1); err != nil {
			g.t.Fatal(err)
		}
		seen[profile] = b.String()
	}
	if !strings.Contains(seen["/debug/syncz"], `"sds"`) {
		g.t.Errorf("the pages show nobody who asks for secrets: %.600s", seen["/debug/syncz"])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for where, text := range seen {
		for part := range g.owners {
			if strings.Contains(text, part) {
				g.t.Errorf("%s has a key", where)
			}
		}
	}
	if len(seen["the log"]) == 0 {
		g.t.Error("the log is empty")
	}
}

// A client in plain text has proven nothing: it is told at once that there are no secrets. What a gateway asks for and
// does not get is said of the object that names it, until it is there.
func TestSecretsThatAreNotSent(t *testing.T) {
	inHouse(t, func(h *house) {
		key := value.ObjectKey{Kind: value.KindGateway, Namespace: "shop", Name: "edge"}
		gateway := &clientnet.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"}}
		gateway.Spec.Servers = []*networking.Server{{Hosts: []string{"a.example.com"},
			Port: &networking.Port{Number: 443, Name: "https", Protocol: "HTTPS"},
			Tls:  &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "a"}}}
		h.streams.Store.Apply([]ingest.Event{{Source: "test", Key: key, Object: gateway}})
		reason := func() string {
			synctest.Wait()
			for _, p := range h.streams.Reports.All() {
				if p.Key == key {
					return p.Field + ": " + p.Reason
				}
			}
			return ""
		}
		g := &gate{house: h, owners: map[string]string{}, current: map[string]string{}} // whose gateways refuse nothing
		g.connect("shop", "lister", false)
		ask := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL,
			ResourceNamesSubscribe: []string{"kubernetes://a"}}
		g.clients[0].send(ask)
		want := "spec.servers[port https].tls.credentialName: proxies of namespace shop: Secret shop/a is not there"
		if got := reason(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		g.rotate("shop", "a")
		if got := reason(); got != "" || g.clients[0].got["kubernetes://a"] == "" {
			t.Errorf("%q", got)
		}

		plain := bufconn.Listen(1 << 20)
		server := h.streams.Streams.GRPC(nil)
		var all sync.WaitGroup
		all.Go(func() { _ = server.Serve(plain) })
		conn, err := grpc.NewClient("passthrough:x", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return plain.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ask.Node = node("router", "shop", "lister")
		if err := s.Send(ask); err != nil {
			t.Fatal(err)
		}
		r, err := s.Recv()
		if err != nil || len(r.Resources) != 0 || !slices.Equal(r.RemovedResources, []string{"kubernetes://a"}) {
			t.Errorf("in plain text: %v, %v", r, err)
		}
		if n := testutil.ToFloat64(h.streams.Metrics.Withheld.WithLabelValues("unproven")); n != 1 {
			t.Errorf("%v clients are counted that have proven nothing, want 1", n)
		}
		cancel()
		_ = conn.Close()
		server.Stop()
		all.Wait()
		g.clients[0].close()
	})
}
