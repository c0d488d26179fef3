package grpcstream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/xdstype"
)

func TestTooManyStreams(t *testing.T) {
	h := start(t, Options{Limits: Limits{Streams: 1}})
	first := h.sotw(t)
	must(t, first.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
	s := h.backend.next(t, "attach").stream
	_, err := h.sotw(t).Recv()
	if status.Code(err) != codes.ResourceExhausted ||
		!strings.Contains(err.Error(), "too many streams: 2, the limit is 1") {
		t.Error(err)
	}
	s.Send(xdstype.ClusterURL, response("1", 1)) // the first one goes on
	_, err = first.Recv()
	must(t, err)
	must(t, first.CloseSend())
	h.backend.next(t, "detach")
}

// Connections are what file descriptors are spent on: further streams of one that is there are not refused.
func TestTooManyConnections(t *testing.T) {
	h := start(t, Options{Limits: Limits{Connections: 1}})
	begin := func(c discoveryv3.AggregatedDiscoveryServiceClient,
		node int) discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient {
		s, err := c.StreamAggregatedResources(t.Context())
		must(t, err)
		// it may be refused already
		if err := s.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(node), TypeUrl: xdstype.ClusterURL}); err != io.EOF {
			must(t, err)
		}
		return s
	}
	one, other := h.dial(t), h.dial(t)
	var open []discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	for i := range 2 {
		open = append(open, begin(one, i))
		h.backend.next(t, "attach")
	}
	_, err := begin(other, 2).Recv()
	if status.Code(err) != codes.ResourceExhausted ||
		!strings.Contains(err.Error(), "too many connections: 2, the limit is 1") {
		t.Error(err)
	}
	for _, s := range open {
		must(t, s.CloseSend())
		h.backend.next(t, "detach")
		if _, err := s.Recv(); err != io.EOF {
			t.Error(err)
		}
	}
	begin(other, 3) // the first connection counts no more
	h.backend.next(t, "attach")
}

func TestRequestsThatEndTheirStream(t *testing.T) {
	h := start(t, Options{Limits: Limits{RequestBytes: 1000, Subscriptions: 10}})
	for _, tc := range []struct {
		name  string
		names []string
		code  codes.Code
		text  string
	}{
		{"too big", []string{strings.Repeat("x", 1000)}, codes.ResourceExhausted,
			"a request has 1071 bytes, the limit is 1000"},
		{"too many names", slices.Repeat([]string{"x"}, 11), codes.ResourceExhausted,
			"too many resource names: 11, the limit is 10"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := h.sotw(t)
			must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.EndpointURL}))
			h.backend.next(t, "attach")
			must(t, c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL, ResourceNames: tc.names}))
			if _, err := c.Recv(); status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.text) {
				t.Error(err)
			}
			h.backend.next(t, "detach")
		})
	}
}

// garbled is a request that no decoder takes.
type garbled struct{}

func (garbled) Marshal(any) ([]byte, error)     { return []byte("\x1a\x7fshort"), nil }
func (garbled) Unmarshal(b []byte, _ any) error { return nil }
func (garbled) Name() string                    { return "proto" }
func (garbled) String() string                  { return "garbled" }

func TestRequestThatDoesNotDecode(t *testing.T) {
	h := start(t, Options{})
	c, err := h.dial(t, grpc.WithDefaultCallOptions(grpc.ForceCodec(garbled{}))).DeltaAggregatedResources(t.Context())
	must(t, err)
	must(t, c.Send(nil))
	if _, err := c.Recv(); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "the request does not decode") {
		t.Error(err)
	}
}

// Other services on the same server have the standard encoding.
func TestOtherServices(t *testing.T) {
	h := newHouse(t, Options{}, nil)
	healthpb.RegisterHealthServer(h.grpc, health.NewServer())
	h.serve(t)
	got, err := healthpb.NewHealthClient(h.conn(t)).Check(t.Context(), &healthpb.HealthCheckRequest{})
	must(t, err)
	if got.Status != healthpb.HealthCheckResponse_SERVING {
		t.Error(got)
	}
}

// A client that compresses gets plain responses: compressed ones would be made for each stream.
func TestCompressingClient(t *testing.T) {
	h := start(t, Options{})
	c, err := h.dial(t, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name))).
		StreamAggregatedResources(t.Context())
	must(t, err)
	must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
	s := h.backend.next(t, "attach").stream
	s.Send(xdstype.ClusterURL, pieces("1", 3))
	got, err := c.Recv()
	must(t, err)
	header, err := c.Header()
	must(t, err)
	if e := header.Get("grpc-encoding"); len(got.Resources) != 3 || slices.Contains(e, gzip.Name) {
		t.Error(len(got.Resources), e)
	}
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"bufconn"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	infos := make(chan credentials.AuthInfo, 1)
	look := grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo,
		next grpc.StreamHandler) error {
		infos <- PeerInfo(ss.Context())
		return next(srv, ss)
	})
	h := newHouse(t, Options{}, credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}}), look)
	h.serve(t)
	c, err := h.dial(t, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool,
		"bufconn"))).StreamAggregatedResources(t.Context())
	must(t, err)
	must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
	h.backend.next(t, "attach").stream.Send(xdstype.ClusterURL, pieces("1", 300))
	got, err := c.Recv()
	must(t, err)
	if info, ok := (<-infos).(credentials.TLSInfo); !ok || info.State.Version == 0 || len(got.Resources) != 300 {
		t.Errorf("%T, %d resources", info, len(got.Resources))
	}
}

// Shutdown ends streams one after the other over the Drain time, and takes no new ones.
func TestShutdownDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 50
		h := start(t, Options{Drain: 10 * time.Second, AfterFunc: afterFunc})
		ends := make(chan time.Duration, clients)
		begin := time.Now()
		for i := range clients {
			c := h.sotw(t)
			must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(i), TypeUrl: xdstype.ClusterURL}))
			h.backend.next(t, "attach")
			go func() {
				_, err := c.Recv()
				if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "shutting down") {
					t.Error(err)
				}
				ends <- time.Since(begin)
			}()
		}
		must(t, h.server.Shutdown(t.Context()))
		var perSecond [11]int
		for range clients {
			perSecond[min(10, int((<-ends).Seconds()))]++
		}
		if slices.Max(perSecond[:10]) > 8 || slices.Min(perSecond[:10]) < 3 || perSecond[10] != 0 {
			t.Error("streams ended in each second:", perSecond)
		}
		if h.server.Streams() != 0 || len(h.backend.attached) != 0 {
			t.Error(h.server.Streams(), "streams are left")
		}
	})
}

func TestShutdownThatIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Drain: time.Hour, AfterFunc: afterFunc})
		c := h.sotw(t)
		must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		h.backend.next(t, "attach")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.server.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Error(err)
		}
		if _, err := c.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	})
}

func TestConnectionAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{Keepalive: keepalive.ServerParameters{MaxConnectionAge: time.Minute,
			MaxConnectionAgeGrace: time.Second}})
		c := h.sotw(t)
		begin := time.Now()
		_, err := c.Recv()
		if d := time.Since(begin); err == nil || d < 50*time.Second || d > 80*time.Second {
			t.Error(err, "after", d)
		}
	})
}

// I9: no stream or goroutine outlives its owner; goleak looks for the goroutines.
func TestStormOfClients(t *testing.T) {
	h := start(t, Options{})
	const clients = 60
	done := make(chan error, clients)
	stop := make(chan struct{})
	go func() { // a worker for all
		defer close(stop)
		streams := map[uint64]shard.Stream{}
		big, small := pieces("1", fewPieces+1), response("2", 100)
		for detached := 0; detached < clients; {
			e := <-h.backend.events
			switch e.what {
			case "attach":
				streams[e.id] = e.stream
				for range 3 {
					e.stream.Send(xdstype.ClusterURL, small)
					e.stream.Send(xdstype.ClusterURL, big)
				}
			case "detach":
				delete(streams, e.id)
				detached++
			}
			for _, s := range streams {
				s.Send(xdstype.ClusterURL, small)
				s.Send(xdstype.ClusterURL, big)
			}
		}
	}()
	for i := range clients {
		go func() {
			done <- func() error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c, err := h.dial(t).StreamAggregatedResources(ctx)
				if err != nil {
					return err
				}
				if err := c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(i), TypeUrl: xdstype.ClusterURL}); err != nil {
					return err
				}
				for n := range 1 + i%6 {
					got, err := c.Recv()
					if err != nil {
						return err
					}
					if want := []string{"2", "1"}[n%2]; got.Nonce != want {
						return fmt.Errorf("message %d has nonce %s", n, got.Nonce)
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		must(t, <-done)
	}
	<-stop
	h.backend.mu.Lock()
	defer h.backend.mu.Unlock()
	if len(h.backend.attached) != 0 {
		t.Error(len(h.backend.attached), "streams are attached")
	}
}
