package ca

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// authenticated lets in whoever names a service account of the namespace shop.
func authenticated(ctx context.Context) (identity.Peer, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	who := strings.Join(md.Get("who"), "")
	if who == "" {
		return identity.Peer{}, status.Error(codes.Unauthenticated, "nobody")
	}
	return identity.Peer{Identity: identity.Identity{TrustDomain: "cluster.local", Namespace: "shop",
		ServiceAccount: who}}, nil
}

// serveCA serves with these settings until the test ends, and returns a connection.
func serveCA(t testing.TB, o ServiceOptions) (*Service, *grpc.ClientConn) {
	t.Helper()
	if o.Authenticate == nil {
		o.Authenticate = authenticated
	}
	o.Now, o.Life, o.MaxLife = time.Now, 10*time.Minute, time.Hour
	s, g, lis, done := NewService(o), grpc.NewServer(), bufconn.Listen(1<<20), make(chan struct{})
	s.Register(g, func(context.Context) (func(), error) { return func() {}, nil })
	go func() {
		defer close(done)
		if err := g.Serve(lis); err != nil {
			t.Error(err)
		}
	}()
	conn := must[*grpc.ClientConn](t)(grpc.NewClient("passthrough:ca",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) })))
	t.Cleanup(func() { conn.Close(); g.Stop(); <-done })
	return s, conn
}

func as(t testing.TB, who string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "who", who)
}

// The name in a certificate is the caller's, whatever the request says.
func TestCreateCertificate(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	s, conn := serveCA(t, ServiceOptions{Authority: func() *Authority { return a }})
	client := securityv1.NewIstioCertificateServiceClient(conn)
	for name, wanted := range map[string]string{"own": web().String(), "somebody else's": "spiffe://cluster.local/ns/bank/sa/teller",
		"a trust domain's": "spiffe://cluster.local"} {
		t.Run(name, func(t *testing.T) {
			resp, err := client.CreateCertificate(as(t, "web"), &securityv1.IstioCertificateRequest{
				Csr: csr(t, ecKey(t), wanted), ValidityDuration: 600})
			if err != nil {
				t.Fatal(err)
			}
			leaf := opens(t, resp.CertChain, root.pem)
			if d := time.Until(leaf.NotAfter); d > 10*time.Minute || d < 9*time.Minute || len(leaf.DNSNames) != 0 {
				t.Error(d, leaf.DNSNames)
			}
		})
	}
	if n := s.Outcomes()[Issued]; n != 3 {
		t.Errorf("%d are counted", n)
	}
}

// Each call that is refused has the code for that, and is counted by its outcome.
func TestRefusedCalls(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	var current *Authority
	s, conn := serveCA(t, ServiceOptions{Authority: func() *Authority { return current }})
	client := securityv1.NewIstioCertificateServiceClient(conn)
	good := csr(t, ecKey(t), web().String())
	with := func(key string) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue("x")}}
	}
	for _, c := range []struct {
		name    string
		who     string
		request *securityv1.IstioCertificateRequest
		ready   bool
		outcome Outcome
		code    codes.Code
	}{
		{"nobody", "", &securityv1.IstioCertificateRequest{Csr: good}, true, Unauthenticated, codes.Unauthenticated},
		{"no request", "web", &securityv1.IstioCertificateRequest{}, true, Malformed, codes.InvalidArgument},
		{"a life too long", "web", &securityv1.IstioCertificateRequest{Csr: good, ValidityDuration: 3601}, true, TooLong,
			codes.InvalidArgument},
		{"a life that overflows", "web", &securityv1.IstioCertificateRequest{Csr: good, ValidityDuration: 1 << 62}, true,
			TooLong, codes.InvalidArgument},
		{"in another one's name", "web", &securityv1.IstioCertificateRequest{Csr: good,
			Metadata: with("ImpersonatedIdentity")}, true, Denied, codes.PermissionDenied},
		{"of another signer", "web", &securityv1.IstioCertificateRequest{Csr: good, Metadata: with("CertSigner")}, true,
			Malformed, codes.InvalidArgument},
		{"before there is an authority", "web", &securityv1.IstioCertificateRequest{Csr: good}, false, NotReady,
			codes.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if current = nil; c.ready {
				current = a
			}
			before := s.Outcomes()[c.outcome]
			if _, err := client.CreateCertificate(as(t, c.who), c.request); status.Code(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if n := s.Outcomes()[c.outcome]; n != before+1 {
				t.Errorf("%d calls are counted as %s", n, c.outcome)
			}
		})
	}
}

// A caller that sends nothing is told so in time, and its goroutine ends.
func TestCallsEnd(t *testing.T) {
	s := NewService(ServiceOptions{Authenticate: authenticated})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	silent := &silentStream{ctx: ctx, ended: make(chan struct{})}
	_, err := s.receive(ctx, silent)
	if f, ok := err.(*failure); !ok || f.outcome != Late || f.code != codes.DeadlineExceeded {
		t.Error(err)
	}
	close(silent.ended)
}

// silentStream is a stream whose client sends nothing.
type silentStream struct {
	grpc.ServerStream
	ctx   context.Context
	ended chan struct{}
}

func (s *silentStream) RecvMsg(any) error { <-s.ended; return context.Canceled }

// A bounded number signs at once, the others wait; one identity has no more calls than its share.
func TestCallsAreBounded(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	hold, signing := make(chan struct{}), make(chan struct{}, 100)
	s, conn := serveCA(t, ServiceOptions{Signers: 2, Authority: func() *Authority {
		signing <- struct{}{}
		<-hold
		return a
	}})
	client := securityv1.NewIstioCertificateServiceClient(conn)
	var all sync.WaitGroup
	request := &securityv1.IstioCertificateRequest{Csr: csr(t, ecKey(t), web().String())}
	for range 8 {
		all.Go(func() {
			if _, err := client.CreateCertificate(as(t, "web"), request); err != nil {
				t.Error(err)
			}
		})
	}
	<-signing
	<-signing
	if len(signing) != 0 {
		t.Error("more sign than may")
	}
	greedy := quota.Of(identity.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "greedy"}, nil)
	for range maxOwn {
		s.calls.Enter(greedy)
	}
	if _, err := client.CreateCertificate(as(t, "greedy"), request); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	all.Go(func() {
		if _, err := client.CreateCertificate(as(t, "modest"), request); err != nil {
			t.Error(err)
		}
	})
	close(hold)
	all.Wait()
	for range maxOwn {
		s.calls.Leave(greedy)
	}
	if n := s.Outcomes(); n[Issued] != 9 || n[TooMany] != 1 {
		t.Errorf("%v", n)
	}
	if n, by := s.calls.Taken(); n != 0 || by != 0 {
		t.Errorf("%d calls of %d remain", n, by)
	}
}

// An identity that asks again and again is refused, and counted; another one is not.
func TestCallsAreNotTooOften(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	now := time.Now()
	s, conn := serveCA(t, ServiceOptions{Authority: func() *Authority { return a },
		Rate: quota.NewRate(1, func() time.Time { return now })})
	client := securityv1.NewIstioCertificateServiceClient(conn)
	request := &securityv1.IstioCertificateRequest{Csr: csr(t, ecKey(t), web().String())}
	for i := range 12 {
		want := codes.OK
		if i >= 10 {
			want = codes.ResourceExhausted
		}
		if _, err := client.CreateCertificate(as(t, "greedy"), request); status.Code(err) != want {
			t.Errorf("call %d: %v, want %s", i, err, want)
		}
	}
	if _, err := client.CreateCertificate(as(t, "modest"), request); err != nil {
		t.Error(err)
	}
	if n := s.Outcomes(); n[Issued] != 11 || n[TooOften] != 2 {
		t.Errorf("%v", n)
	}
}

// BenchmarkSign is what a signature costs.
func BenchmarkSign(b *testing.B) {
	root := under(b, nil, "root", time.Hour)
	own := must[Material](b)(SelfSigned(Root{Organization: "td", Life: time.Hour}, time.Now()))
	for name, m := range map[string]Material{"ECDSA": root.material(b, nil, root.pem), "RSA": own} {
		a := must[*Authority](b)(New(m))
		request := csr(b, ecKey(b), web().String())
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				key, err := keyOf(request)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := a.Sign(Request{Key: key, Who: web(), Life: time.Hour}, time.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
