package secure

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
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
	"google.golang.org/grpc"
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

// grants are the service accounts that may list Secrets, as an API server says that may be away.
type grants struct {
	mu sync.Mutex
	// Guarded by mu.
	may  map[string]bool      // by namespace/account
	away bool                 // nobody is told anything
	had  map[string]time.Time // when one could last have been told that it may
}

func newGrants(accounts ...string) *grants {
	g := &grants{may: map[string]bool{}, had: map[string]time.Time{}}
	for _, a := range accounts {
		g.may[a] = true
	}
	return g
}

// MayListSecrets implements secrets.Rights.
func (g *grants) MayListSecrets(_ context.Context, who identity.Identity) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away {
		return false, errors.New("away")
	}
	return g.may[who.Namespace+"/"+who.ServiceAccount], nil
}

// set changes what is answered.
func (g *grants) set(change func(g *grants)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for account, may := range g.may {
		if may && !g.away {
			g.had[account] = time.Now()
		}
	}
	change(g)
}

// longest is how long an answer may hold: five minutes, and until the next look.
const longest = 5*time.Minute + 25*time.Second

// allows reports whether an account may have secrets now.
func (g *grants) allows(account string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	had, ever := g.had[account]
	return g.may[account] && !g.away || ever && time.Since(had) < longest
}

// gate is the gateways of many identities, and the Secrets that they ask for.
type gate struct {
	*house
	grants *grants
	random *rand.Rand // nil: nothing is refused

	mu      sync.Mutex
	owners  map[string]string // the namespace of a key, by a part of it
	forms   [][]byte          // of all keys
	current map[string]string // a part of the key of each Secret, by namespace/name
	clients []*gateway
}

func newGate(h *house, random *rand.Rand) *gate {
	return &gate{house: h, grants: h.rights.(*grants), random: random, owners: map[string]string{},
		current: map[string]string{}}
}

// gateway is one stream, of either variant of the protocol.
type gateway struct {
	ads
	gate               *gate
	namespace, account string
	until              time.Time // when its proof ends

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
	g.forms = append(append(g.forms, forms([]byte(part))...), forms(scalar(g.t, c.PrivateKey.(*ecdsa.PrivateKey)))...)
	g.mu.Unlock()
	g.put(namespace, name, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": g.root.pem})
}

// put stores a Secret, or takes it away.
func (g *gate) put(namespace, name string, data map[string][]byte) {
	e := ingest.Event{Source: "test", Key: value.ObjectKey{Kind: value.KindSecret, Namespace: namespace, Name: name}}
	if data != nil {
		e.Object = &corev1.Secret{Data: data}
	}
	g.streams.Store.Apply([]ingest.Event{e})
}

// connect opens a stream of a service account; brief has it prove that for ten minutes only.
func (g *gate) connect(namespace, account string, brief, sotw bool) *gateway {
	g.t.Helper()
	life := 1000 * time.Hour
	if brief {
		life = 10 * time.Minute
	}
	c := &gateway{gate: g, namespace: namespace, account: account, until: time.Now().Add(life),
		asked: map[string]bool{}, got: map[string]string{}}
	c.ads = g.stream(&agent{cert: g.root.client(g.t, "spiffe://cluster.local/ns/"+namespace+"/sa/"+account, life)},
		node("router", namespace, account), sotw)
	g.mu.Lock()
	g.clients = append(g.clients, c)
	g.mu.Unlock()
	go c.receive()
	return c
}

// receive takes what comes until the stream ends, and now and then refuses it.
func (c *gateway) receive() {
	for {
		r, err := c.recv()
		if err != nil {
			return
		}
		refuses := c.take(r) && c.gate.chance(8)
		if c.answer(r, refuses) != nil {
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
		may := c.gate.grants.allows(c.namespace + "/" + c.account)
		if c.saw++; err != nil || owner != c.namespace || !may || !time.Now().Before(c.until) {
			c.gate.t.Errorf("a gateway of %s/%s (may list: %v, proven until %v) has a key of %s: %v", c.namespace, c.account,
				may, c.until, owner, err)
		}
	}
	for _, resource := range r.Resources {
		s := &tlspb.Secret{}
		if resource.Resource.UnmarshalTo(s) != nil || s.GetTlsCertificate() == nil {
			continue
		}
		for part := range c.gate.owners {
			if bytes.Contains(s.GetTlsCertificate().GetPrivateKey().GetInlineBytes(), []byte(part)) {
				c.got[s.Name] = part
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
		"kubernetes-gateway://"+pick("shop", "bank")+"/a", "configmap://shop/a", "kubernetes://shop/../bank/a",
		"kubernetes://../bank/a", "kubernetes://bank%2Fa", "kubernetes:///bank/a", "a") + pick("", "", "-cacert")
	if c.asked[name] && pick("yes", "no") == "yes" {
		delete(c.asked, name)
		delete(c.got, name)
		c.gate.mu.Unlock()
		c.subscribe(nil, []string{name})
		return
	}
	c.asked[name] = true
	c.gate.mu.Unlock()
	c.subscribe([]string{name}, nil)
}

// TestSecretsStayWithTheirReaders has gateways of many identities ask for the Secrets of all, by both variants of the
// protocol, while these change, certificates expire, rights are taken and given back, the API server is away and
// responses are refused. No key ever reaches a gateway that may not have it, those that may have it get it, and no
// page, metric, profile or line of the log has one.
func TestSecretsStayWithTheirReaders(t *testing.T) {
	for seed := range uint64(3) {
		inHouse(t, func(h *house) {
			g := newGate(h, rand.New(rand.NewPCG(seed, 0)))
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
			h.rights = newGrants("shop/lister", "bank/lister", "shop/sometimes", "bank/sometimes")
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
		dice, space, account := g.random.IntN(20), []string{"shop", "bank"}[g.random.IntN(2)],
			[]string{"lister", "sometimes", "other"}[g.random.IntN(3)]
		which := g.random.IntN(len(g.clients) + 1)
		name := []string{"a", "b"}[g.random.IntN(2)]
		g.mu.Unlock()
		switch {
		case dice < 2 || i < 8:
			g.connect(space, account, i%4 == 3, i%2 == 0)
		case dice == 2:
			time.Sleep(time.Minute)
		case dice == 3:
			time.Sleep(longest)
		case dice == 4:
			g.grants.set(func(r *grants) { r.may[space+"/sometimes"] = !r.may[space+"/sometimes"] })
		case dice == 5:
			g.grants.set(func(r *grants) { r.away = !r.away })
		case dice == 6:
			g.put(space, name, nil)
		case dice < 9:
			g.rotate(space, name)
		case which < len(g.clients):
			g.clients[which].ask()
		}
		synctest.Wait()
	}
	g.grants.set(func(r *grants) {
		r.away = false
		r.may["shop/sometimes"], r.may["bank/sometimes"] = true, false
	})
	time.Sleep(2 * longest)
}

// settle has every gateway ask for the same, and looks at what they have.
func (g *gate) settle() {
	g.rotate("shop", "a") // they may not be there any more
	g.rotate("bank", "a")
	synctest.Wait()
	for _, c := range g.clients {
		c.subscribe([]string{"kubernetes://a"}, nil)
	}
	time.Sleep(time.Minute)
	g.rotate("shop", "a") // what was refused is tried again
	g.rotate("bank", "a")
	time.Sleep(time.Minute)
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	keys, expired, denied := 0, 0, 0
	for i, c := range g.clients {
		keys += c.saw
		may := c.account == "lister" || c.account == "sometimes" && c.namespace == "shop"
		switch current := g.current[c.namespace+"/a"]; {
		case !time.Now().Before(c.until):
			expired++
			if c.got["kubernetes://a"] == current {
				g.t.Errorf("gateway %d has a key from after its certificate has expired", i)
			}
		case !may:
			denied++
			if c.got["kubernetes://a"] == current {
				g.t.Errorf("gateway %d of %s/%s has a key from after it has lost the right", i, c.namespace, c.account)
			}
		case c.got["kubernetes://a"] == "":
			g.t.Errorf("gateway %d of %s/%s has none", i, c.namespace, c.account)
		}
	}
	if keys < 20 || expired == 0 || denied == 0 {
		g.t.Errorf("%d keys were sent, %d certificates expired, %d have no right: that proves little", keys, expired, denied)
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
		for _, form := range g.forms {
			if strings.Contains(text, string(form)) {
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
		g := newGate(h, nil)
		g.connect("shop", "lister", false, false)
		ask := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL,
			ResourceNamesSubscribe: []string{"kubernetes://a"}}
		g.clients[0].subscribe(ask.ResourceNamesSubscribe, nil)
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
	}, func(h *house) { h.rights = newGrants("shop/lister") })
}
