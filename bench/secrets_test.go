package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// vault is a mesh with Secrets, and gateways without connections that ask for them.
type vault struct {
	whole *whole
	pairs [2]map[string][]byte // certificates with keys, by turns

	mu sync.Mutex
	// Guarded by mu.
	taken, wanted int // responses with secrets
	bytes         int
	reached       chan struct{}
}

// asker is one gateway; it implements shard.Stream.
type asker struct {
	id    uint64
	vault *vault
	proxy *proxy.Proxy
	acks  chan ads.Request
}

// ID implements shard.Stream.
func (a *asker) ID() uint64 { return a.id }

// Close implements shard.Stream.
func (a *asker) Close(error) {}

// Send implements shard.Stream.
func (a *asker) Send(url string, r *encodecache.Response) {
	a.acks <- ads.Request{Delta: true, TypeURL: url, Nonce: r.Nonce()}
	v := a.vault
	v.mu.Lock()
	defer v.mu.Unlock()
	v.taken++
	v.bytes += r.Len()
	if v.taken == v.wanted {
		close(v.reached)
	}
}

// newVault makes a mesh with Secrets of one namespace.
func newVault(b *testing.B, secrets int) *vault {
	v := &vault{whole: newWhole(mesh.New(mesh.Usual(10)))}
	for i := range v.pairs {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(b, err)
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i)), DNSNames: []string{"a.example.com"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
		must(b, err)
		private, err := x509.MarshalPKCS8PrivateKey(key)
		must(b, err)
		v.pairs[i] = map[string][]byte{"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
	}
	for i := range secrets {
		v.put(i, 0)
	}
	return v
}

// put gives a Secret one of the pairs.
func (v *vault) put(secret, pair int) {
	v.whole.server.Store.Apply([]ingest.Event{{Source: mesh.Source, Key: value.ObjectKey{Kind: value.KindSecret,
		Namespace: "edge", Name: fmt.Sprint("cert-", secret)}, Object: &corev1.Secret{Data: v.pairs[pair%2]}}})
}

// askers makes gateways of one service account.
func (v *vault) askers(b *testing.B, n int) []*asker {
	out := make([]*asker, n)
	who := identity.Peer{Identity: identity.Identity{TrustDomain: "cluster.local", Namespace: "edge",
		ServiceAccount: "gateway"}, Until: time.Now().Add(24 * time.Hour)}
	for i := range out {
		id := fmt.Sprintf("router~10.1.%d.%d~gateway-%d.edge~cluster.local", i/250, i%250, i)
		p, err := proxy.Accept(&corepb.Node{Id: id,
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"NAMESPACE": structpb.NewStringValue("edge"),
				"SERVICE_ACCOUNT": structpb.NewStringValue("gateway")}}}, proxy.Peer{Peer: who})
		must(b, err)
		out[i] = &asker{id: uint64(i + 1), vault: v, proxy: p, acks: make(chan ads.Request, 16)}
		go func() { // as a stream's reader does
			for r := range out[i].acks {
				v.whole.server.Shards.Receive(out[i].id, r)
			}
		}()
	}
	return out
}

// wait returns when so many more responses have come than before do began.
func (v *vault) wait(b *testing.B, n int, do func()) {
	v.mu.Lock()
	reached := make(chan struct{})
	v.wanted, v.reached = v.taken+n, reached
	v.mu.Unlock()
	do()
	select {
	case <-reached:
	case <-time.After(5 * time.Minute):
		b.Fatalf("%d of %d responses have come", v.taken, v.wanted)
	}
}

// BenchmarkSecrets is 10,000 Secrets that 1,000 gateways ask for, each for all of them, or each for ten of its own:
// what it takes until all have theirs, what stays in memory for a gateway, and the rotation of one Secret, which goes
// to those who ask for it and to nobody else.
func BenchmarkSecrets(b *testing.B) {
	gateways, secrets := 1000, 10_000
	if testing.Short() {
		gateways, secrets = 100, 1000
	}
	for _, c := range []struct {
		what  string
		names func(gateway int) (first, n int)
		sent  int // to how many a rotation goes
	}{
		{"all", func(int) (int, int) { return 0, secrets }, gateways},
		{"own", func(i int) (int, int) { return 10 * i % secrets, 10 }, 1},
	} {
		b.Run("ask="+c.what, func(b *testing.B) {
			v := newVault(b, secrets)
			askers := v.askers(b, gateways)
			defer func() {
				v.whole.stop()
				for _, a := range askers {
					close(a.acks)
				}
			}()
			base := live()
			var connect cost
			connect.measure(func() {
				v.wait(b, gateways, func() {
					for i, a := range askers {
						first, n := c.names(i)
						names := make([]string, n)
						for j := range names {
							names[j] = fmt.Sprint("kubernetes://cert-", first+j)
						}
						must(b, v.whole.server.Shards.Attach(a, a.proxy, ads.Request{Delta: true, TypeURL: xdstype.SecretURL,
							Subscribe: v.whole.server.Names.Of(names)}))
					}
				})
			})
			held, shared := live()-base, v.bytes
			var rotation cost
			sent := v.taken
			i := 0
			for b.Loop() {
				i++
				rotation.measure(func() { v.wait(b, c.sent, func() { v.put(7, i) }) })
			}
			if extra := v.taken - sent - i*c.sent; extra != 0 {
				b.Errorf("%d responses more than there are gateways that ask for what was rotated", extra)
			}
			for _, a := range askers {
				v.whole.server.Shards.Detach(a.id)
			}
			b.ReportMetric(float64(connect.cpu.Milliseconds()), "connect-cpu-ms")
			b.ReportMetric(float64(connect.time.Milliseconds()), "connect-ms")
			b.ReportMetric(float64(held)/float64(gateways), "held-B/gateway")
			b.ReportMetric(float64(shared)/float64(gateways), "sent-B/gateway")
			b.ReportMetric(float64(rotation.cpu.Microseconds())/float64(rotation.n), "rotation-cpu-µs")
		})
	}
}
