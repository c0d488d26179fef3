package wire_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pilotd/pilotd/loadtest/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// raw passes bytes through grpc.
type raw struct{ encoding.CodecV2 }

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// serve is a grpc server whose streams are handled by handle.
func serve(t *testing.T, l net.Listener, handle func(grpc.ServerStream) error, options ...grpc.ServerOption) {
	t.Helper()
	s := grpc.NewServer(append(options, grpc.ForceServerCodecV2(raw{}))...)
	handler := func(_ any, ss grpc.ServerStream) error { return handle(ss) }
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "StreamAggregatedResources", Handler: handler, ServerStreams: true,
			ClientStreams: true},
			{StreamName: "DeltaAggregatedResources", Handler: handler, ServerStreams: true, ClientStreams: true}}}, nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-served })
}

// echo sends back what comes, until it comes no more or is "end".
func echo(ss grpc.ServerStream) error {
	for {
		var b []byte
		if err := ss.RecvMsg(&b); err != nil {
			return err
		}
		if string(b) == "end" {
			return status.Error(codes.ResourceExhausted, "enough")
		}
		if err := ss.SendMsg(b); err != nil {
			return err
		}
	}
}

// reader is a handler that collects one message at a time.
type reader struct {
	b     []byte
	want  int
	done  chan []byte
	ended chan error
}

func newReader(want int) *reader {
	return &reader{want: want + 5, done: make(chan []byte, 1), ended: make(chan error, 1)}
}

func (r *reader) Data(b []byte) error {
	if r.b = append(r.b, b...); strings.HasSuffix(string(r.b), "reject") {
		return errors.New("rejected")
	}
	if len(r.b) == r.want {
		r.done <- r.b[5:]
		r.b = nil
	}
	return nil
}

func (r *reader) Ended(err error) { r.ended <- err }

// connection is one under way.
type connection struct {
	*wire.Conn
	conn net.Conn
	over chan error
}

func connect(t *testing.T, e wire.Endpoint) *connection {
	t.Helper()
	conn, err := e.Dial(t.Context(), wire.Account{})
	must(t, err)
	header, err := e.Header(wire.Account{})
	must(t, err)
	return run(t, conn, header)
}

func run(t *testing.T, conn net.Conn, h wire.Header) *connection {
	c := &connection{Conn: wire.NewConn(conn, h, wire.NewBuffers()), conn: conn, over: make(chan error, 1)}
	go func() { c.over <- c.Run() }()
	t.Cleanup(func() { conn.Close(); c.over <- <-c.over })
	return c
}

func (c *connection) send(t *testing.T, s *wire.Stream, message []byte) {
	t.Helper()
	s.Send(message[:len(message)/2], message[len(message)/2:])
	must(t, c.Flush())
}

// Messages that are larger than every window go to the server and back, on several streams of one connection, over
// every kind of connection.
func TestMessagesOfAnySize(t *testing.T) {
	certificate, files := certify(t)
	for name, where := range map[string]struct {
		network, address string
		secure           bool
	}{"tcp": {"tcp", "127.0.0.1:0", false}, "unix": {"unix", filepath.Join(t.TempDir(), "s"), false},
		"tls": {"tcp", "127.0.0.1:0", true}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen(where.network, where.address)
			must(t, err)
			e := wire.At(l.Addr().String())
			var options []grpc.ServerOption
			if where.network == "unix" {
				e = wire.At("unix://" + where.address)
			}
			if where.secure {
				options = append(options,
					grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate},
						MinVersion: tls.VersionTLS12})))
				e, err = e.Secure(wire.Secrets{CA: files[0], ServerName: "server"})
				must(t, err)
			}
			e.ReceiveBuffer = 512 << 10
			serve(t, l, echo, options...)
			c := connect(t, e)
			for _, size := range []int{0, 1, 60, 5000, 300_000} {
				for _, delta := range []bool{false, true} {
					r := newReader(size)
					s, err := c.Open(delta, r)
					must(t, err)
					message := bytes.Repeat([]byte{byte(size)}, size)
					for range 2 {
						c.send(t, s, message)
						if got := <-r.done; !bytes.Equal(got, message) {
							t.Errorf("%d bytes come back as %d", size, len(got))
						}
					}
				}
			}
		})
	}
}

func TestStreamEndsAlone(t *testing.T) {
	l := bufconn.Listen(64 << 10)
	serve(t, l, echo)
	conn, err := l.Dial()
	must(t, err)
	c := run(t, conn, wire.Header{Authority: "x"})
	ends, rejects, stays := newReader(0), newReader(100), newReader(2)
	var streams []*wire.Stream
	for _, h := range []*reader{ends, rejects, stays} {
		s, err := c.Open(false, h)
		must(t, err)
		streams = append(streams, s)
	}
	c.send(t, streams[0], []byte("end"))
	if err := <-ends.ended; !errors.Is(err, wire.ErrEnded) || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
	c.send(t, streams[1], []byte("reject"))
	if err := <-rejects.ended; err == nil || err.Error() != "rejected" {
		t.Error(err)
	}
	c.send(t, streams[2], []byte("on"))
	if got := <-stays.done; string(got) != "on" {
		t.Errorf("%q", got)
	}
}

// What streams say of themselves reaches the server, the token as it is now.
func TestHeaders(t *testing.T) {
	said := make(chan metadata.MD, 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	serve(t, l, func(ss grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(ss.Context())
		said <- md
		return nil
	})
	file := filepath.Join(t.TempDir(), "token")
	e := wire.At(l.Addr().String())
	e.Authority, e.TokenFile = "istiod.istio-system.svc:15012", file
	for _, token := range []string{"one", "two"} {
		must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
		c := connect(t, e)
		r := newReader(0)
		_, err := c.Open(false, r)
		must(t, err)
		must(t, c.Flush())
		<-r.ended
		if md := <-said; md.Get("authorization")[0] != "Bearer "+token || md.Get(":authority")[0] != e.Authority {
			t.Error(md)
		}
	}
	e.TokenFile += "-gone"
	if _, err := e.Header(wire.Account{}); err == nil {
		t.Error("a token that is not there")
	}
}

// A server that goes away lets streams end; then the connection is over.
func TestServerGoesAway(t *testing.T) {
	l := bufconn.Listen(64 << 10)
	s := grpc.NewServer(grpc.ForceServerCodecV2(raw{}))
	begun, end := make(chan struct{}, 1), make(chan struct{})
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "StreamAggregatedResources", ServerStreams: true, ClientStreams: true,
			Handler: func(any, grpc.ServerStream) error {
				select {
				case begun <- struct{}{}:
				default:
				}
				<-end
				return nil
			}}}}, nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := l.Dial()
	must(t, err)
	c := run(t, conn, wire.Header{})
	r := newReader(0)
	_, err = c.Open(false, r)
	must(t, err)
	must(t, c.Flush())
	<-begun
	stopped := make(chan struct{})
	go func() { s.GracefulStop(); close(stopped) }()
	for err == nil { // until it has said so
		var s *wire.Stream
		if s, err = c.Open(false, newReader(0)); err == nil {
			s.Reset()
			runtime.Gosched()
		}
	}
	close(end)
	<-r.ended
	<-stopped
	<-served
	if err := <-c.over; err == nil {
		t.Error("the connection goes on")
	} else {
		c.over <- err
	}
}

func TestSecrets(t *testing.T) {
	certificate, files := certify(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	pool := x509.NewCertPool()
	text, err := os.ReadFile(files[0])
	must(t, err)
	pool.AppendCertsFromPEM(text)
	serve(t, l, echo, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate},
		ClientCAs:  pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS12})))
	plain := wire.At(l.Addr().String())
	for _, c := range []struct {
		secrets wire.Secrets
		wrong   string
	}{
		{wire.Secrets{CA: files[0], ServerName: "server", Cert: files[0], Key: files[1]}, ""},
		{wire.Secrets{Insecure: true, Cert: files[0], Key: files[1]}, ""},
		{wire.Secrets{Insecure: true}, "TLS"},
		{wire.Secrets{CA: files[0], ServerName: "other", Cert: files[0], Key: files[1]}, "other"},
		{wire.Secrets{ServerName: "server", Cert: files[0], Key: files[1]}, "certificate"},
		{wire.Secrets{Cert: files[0]}, "needs its key"},
		{wire.Secrets{CA: files[1]}, "no certificate"},
		{wire.Secrets{CA: "nowhere"}, "no such file"},
		{wire.Secrets{Cert: files[1], Key: files[0]}, "tls"},
	} {
		e, err := plain.Secure(c.secrets)
		if err == nil {
			var conn net.Conn
			if conn, err = e.Dial(t.Context(), wire.Account{}); err == nil {
				conn.Close()
			}
		}
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%+v: %v", c.secrets, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plain.Dial(ctx, wire.Account{}); err == nil {
		t.Error("dialed without time")
	}
}

// An aborted connection is over for the other side at once, and in disorder.
func TestAbort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	e := wire.At(l.Addr().String())
	conn, err := e.Dial(t.Context(), wire.Account{})
	must(t, err)
	other, err := l.Accept()
	must(t, err)
	defer other.Close()
	wire.Abort(conn)
	if _, err := other.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

// certify returns a certificate that vouches for itself, and the files of it and of its key.
func certify(t *testing.T) (tls.Certificate, [2]string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"},
		DNSNames: []string{"server"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	files := [2]string{filepath.Join(dir, "cert"), filepath.Join(dir, "key")}
	must(t, os.WriteFile(files[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(files[1], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, files
}
