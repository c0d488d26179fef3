package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/identity"
)

const (
	// callers ask for certificates, each for the next when it has one.
	callers = 64
	// requests is how many certificates an op asks for.
	requests = 100_000
)

// register is a certificate service with an authority of its own, behind a port, and a connection to it.
type register struct {
	service *ca.Service
	port    *grpc.Server
	served  chan error
	conn    *grpc.ClientConn
}

// authorities are the material of a root with a key on P-256, and of one with RSA as pilotd makes it.
func authorities(b *testing.B) map[string]ca.Material {
	own, err := ca.SelfSigned(ca.Root{Organization: "cluster.local", Life: 24 * time.Hour}, time.Now())
	must(b, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(b, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"cluster.local"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(b, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(b, err)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return map[string]ca.Material{"RSA": own, "P256": {Cert: root, Roots: root,
		Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}}
}

// open serves certificates as pilotd does: half of the processors sign.
func open(b *testing.B, m ca.Material) *register {
	authority, err := ca.New(m)
	must(b, err)
	var asked atomic.Uint64
	r := &register{port: grpc.NewServer(), served: make(chan error, 1)}
	r.service = ca.NewService(ca.ServiceOptions{Life: time.Hour, MaxLife: time.Hour, Now: time.Now,
		Signers: max(1, runtime.GOMAXPROCS(0)/2), Authority: func() *ca.Authority { return authority },
		Authenticate: func(context.Context) (identity.Peer, error) {
			return identity.Peer{Identity: identity.Identity{TrustDomain: "cluster.local", Namespace: "shop",
				ServiceAccount: string(rune('a' + asked.Add(1)%26))}}, nil
		}})
	r.service.Register(r.port, func(context.Context) (func(), error) { return func() {}, nil })
	l, err := fleet.Unix(b.TempDir())
	must(b, err)
	go func() { r.served <- r.port.Serve(l) }()
	r.conn, err = grpc.NewClient("unix://"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(b, err)
	return r
}

// close ends it.
func (r *register) close(b *testing.B) {
	must(b, r.conn.Close())
	r.port.Stop()
	must(b, <-r.served)
}

// ask has the callers ask for n certificates, and returns how long each took.
func (r *register) ask(b *testing.B, text string, n int) (out []time.Duration) {
	client := securityv1.NewIstioCertificateServiceClient(r.conn)
	var all sync.WaitGroup
	times := make([][]time.Duration, callers)
	for c := range callers {
		all.Go(func() {
			for range n / callers {
				began := time.Now()
				if _, err := client.CreateCertificate(b.Context(), &securityv1.IstioCertificateRequest{Csr: text}); err != nil {
					b.Error(err)
					return
				}
				times[c] = append(times[c], time.Since(began))
			}
		})
	}
	all.Wait()
	for _, t := range times {
		out = append(out, t...)
	}
	return out
}

// csrOf is a request for a certificate of a new RSA key, as Istio's agents make it.
func csrOf(b *testing.B) string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(b, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(b, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// BenchmarkCertificates is what 100,000 certificates cost, asked for by 64 callers without a pause, while an endpoint
// changes every 25 ms and a sidecar gets that: certificates a second, the processors of this process (the callers are
// among it, and the sidecar is not), how long one takes, and how long a change takes until the sidecar has it, beside
// the callers and alone.
func BenchmarkCertificates(b *testing.B) {
	services, n := 1000, requests
	if testing.Short() {
		services, n = 100, 2000
	}
	s := besiege(b, services)
	defer s.end(b)
	text := csrOf(b)
	for name, m := range authorities(b) {
		b.Run(name, func(b *testing.B) {
			r := open(b, m)
			defer r.close(b)
			alone := s.times(b, changesEach/4)
			var took, with []time.Duration
			var elapsed, processors float64
			for b.Loop() {
				ran, _ := processorTime(b)
				began, done := time.Now(), make(chan struct{})
				go func() { defer close(done); took = append(took, r.ask(b, text, n)...) }()
				for over := false; !over; {
					with = append(with, s.times(b, 10)...)
					select {
					case <-done:
						over = true
					default:
					}
				}
				now, _ := processorTime(b)
				elapsed, processors = elapsed+time.Since(began).Seconds(), processors+now-ran
			}
			b.ReportMetric(float64(len(took))/elapsed, "certificates/s")
			b.ReportMetric(processors/elapsed, "processors")
			for part, name := range map[float64]string{0.5: "", 0.99: "-p99"} {
				b.ReportMetric(quantile(took, part), "µs/certificate"+name)
				b.ReportMetric(quantile(with, part), "µs/change"+name)
				b.ReportMetric(quantile(alone, part), "alone-µs/change"+name)
			}
		})
	}
}
