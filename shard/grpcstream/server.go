package grpcstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/puzpuzpuz/xsync/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/pilotd/pilotd/identity/quota"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
)

// Options are the settings of a Server.
type Options struct {
	// Accept decides what a client is, from what it says about itself and what its connection proves. It is given nil
	// if the first request has no node. Its error, a status if it has a better code than InvalidArgument, ends the
	// stream.
	Accept func(*corev3.Node, proxy.Peer) (*proxy.Proxy, error)
	// Authenticate finds out who the client of a stream is, before its first request is read. It is called by the
	// stream's reader and may block for a while; its error, a status, ends the stream. Without it nobody has proven
	// anything. Streams over plaintext come to it as well.
	Authenticate func(context.Context) (proxy.Peer, error)
	// NodeMetadata are the keys of the node's metadata, and NodeExtensions the types of its extensions, that Accept
	// reads: the node has no others when it is given to Accept.
	NodeMetadata, NodeExtensions []string
	// Names interns the names of requests; the Sessions' own.
	Names *ads.NamesTable

	// Limits bound what one client can cost.
	Limits Limits
	// Requests bounds how often each caller, an identity or an address, opens a stream or sends a request that answers
	// nothing; nil is no limit.
	Requests *quota.Rate
	// Keepalive are pings and the maximum age of a connection, which needs a MaxConnectionAgeGrace to end streams.
	Keepalive keepalive.ServerParameters
	// Enforcement is how often clients may ping.
	Enforcement keepalive.EnforcementPolicy

	// Stuck is how long a client may leave responses waiting without reading any; 0 means for ever.
	Stuck time.Duration
	// RequestTime is how long a client may take to send a stream's first request, from when it is waited for, and any
	// request that it has begun; 0 means for ever. It may take a quarter more.
	RequestTime time.Duration
	// Drain is the time over which Shutdown spreads the ends of streams.
	Drain time.Duration
	// AfterFunc calls f after d, once, unless stop is called before; it is time.AfterFunc. Without it Stuck,
	// RequestTime and Drain are not observed.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// Panicked is told of panics that were caught, each of which has ended one stream at most. It must not block. It
	// may be nil.
	Panicked func(f shard.Fault)
}

// Server serves the aggregated discovery service for any number of listeners.
type Server struct {
	// Immutable after New.
	options Options
	limits  Limits
	backend Backend
	nodes   *nodeDecoder
	codec   codec

	streams *xsync.MapOf[uint64, *stream]
	lastID  atomic.Uint64
	open    atomic.Int64
	// connections are those with streams.
	connections atomic.Int64
	idle        *idleConnections
	share       *quota.Share // of streams
	stats       stats
	idleWatch   *idleWatch
	reception   *reception
	// draining is closed when Shutdown begins.
	draining chan struct{}
	drain    sync.Once

	mu sync.Mutex
	// Guarded by mu.
	servers []*grpc.Server
}

// New makes a Server that gives requests to backend.
func New(backend Backend, o Options) *Server {
	if o.Names == nil {
		o.Names = ads.NewNamesTable()
	}
	s := &Server{
		options:  o,
		limits:   o.Limits.withDefaults(),
		backend:  backend,
		nodes:    &nodeDecoder{metadata: o.NodeMetadata, extensions: o.NodeExtensions},
		codec:    newCodec(),
		streams:  xsync.NewMapOf[uint64, *stream](),
		draining: make(chan struct{}),
	}
	s.share = quota.NewShare(0, s.limits.StreamsPerCaller)
	s.idleWatch = newIdleWatch(s)
	s.idle = newIdleConnections(s.limits.maxIdleConnections())
	s.reception = newReception(s.limits.ReceivedInAll)
	return s
}

// GRPC makes a grpc server with the service in it and the options that it needs; creds are nil for plaintext. The
// caller may register other services, and must serve it before Shutdown, which stops it.
func (s *Server) GRPC(creds credentials.TransportCredentials, more ...grpc.ServerOption) *grpc.Server {
	options := append(serverOptions(s.limits, creds, s.idle), grpc.ForceServerCodecV2(s.codec),
		grpc.KeepaliveParams(s.options.Keepalive),
		grpc.KeepaliveEnforcementPolicy(s.options.Enforcement))
	g := grpc.NewServer(append(options, more...)...)
	g.RegisterService(serviceDesc(), s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, g)
	return g
}

// ServerOptions returns the options of the transport, for this server and for what it is measured against. What is not
// here is grpc's default, which is best: shared write buffers and pooled reads.
//
// The windows are fixed: those that grow with the connection let one stream that nobody reads hold 16 MiB. A request
// that is larger than the window gets as much as it needs when it is read.
func ServerOptions(l Limits, creds credentials.TransportCredentials) []grpc.ServerOption {
	return serverOptions(l, creds, nil)
}

// serverOptions works like ServerOptions, with a bound of the connections without streams unless idle is nil.
func serverOptions(l Limits, creds credentials.TransportCredentials, idle *idleConnections) []grpc.ServerOption {
	l = l.withDefaults()
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(l.RequestBytes),
		grpc.MaxConcurrentStreams(uint32(l.StreamsPerConnection)),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
	}
	if creds == nil {
		creds = insecure.NewCredentials()
	} else {
		// TLS has a buffer of its own; a second one costs 10 KiB a connection.
		options = append(options, grpc.ReadBufferSize(0))
	}
	return append(options, grpc.Creds(connCredentials{creds, idle}))
}

const (
	// maxHeaders bounds the headers of a stream, which are kept for its life: a token among them may have some
	// kilobytes.
	maxHeaders = 16 << 10
	// handshakeTime is how long a connection may take to begin with HTTP/2.
	handshakeTime = 10 * time.Second
	// streamWindow and connectionWindow are how much a client may send that nobody has asked for.
	streamWindow     = 64 << 10
	connectionWindow = 1 << 20
)

// Streams returns the number of open streams.
func (s *Server) Streams() int { return int(s.open.Load()) }

// Unwritten returns the bytes of responses that are not written to their streams' connections yet. Most of them are
// shared by many streams.
func (s *Server) Unwritten() (n int) {
	s.streams.Range(func(_ uint64, st *stream) bool {
		n += int(st.owed.Load())
		return true
	})
	return n
}

// Stats are counts since the start.
type Stats struct {
	// Direct and Queued are the responses sent by workers themselves and through writers; Writers the writer goroutines
	// started.
	Direct, Queued, Writers uint64
	// Stuck are the streams cut off for not reading, Shed those that were given no time to, because too much waited for
	// all.
	Stuck, Shed uint64
	// Away are the clients that were asked to connect again.
	Away uint64
	// Refused are the streams that ended over a limit, by reason; those that were shed are among them.
	Refused [NumReasons]uint64
}

// stats are the counters behind Stats. Safe for concurrent use.
type stats struct {
	direct, queued, writers, stuck, shed, away atomic.Uint64
	refused                                    [NumReasons]atomic.Uint64
}

// refuse counts a stream that ends with err, if that is over a limit.
func (c *stats) refuse(err error) {
	if reason, ok := reasonOf(err); ok {
		c.refused[reason].Add(1)
	}
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	c := &s.stats
	out := Stats{Direct: c.direct.Load(), Queued: c.queued.Load(), Writers: c.writers.Load(), Stuck: c.stuck.Load(),
		Shed: c.shed.Load(), Away: c.away.Load()}
	for r := range out.Refused {
		out.Refused[r] = c.refused[r].Load()
	}
	return out
}

// Shutdown refuses new streams, ends the open ones over the Drain time so that their clients do not all reconnect at
// once, and returns when all are gone, or cuts them off when ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain.Do(func() { close(s.draining) })
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	stop := s.endStreams()
	defer stop()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var all sync.WaitGroup
		for _, g := range servers {
			all.Go(g.GracefulStop)
		}
		all.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	// Stop waits for no client, but a handler may take a moment. Its end is not worth waiting for for longer.
	for _, g := range servers {
		go g.Stop()
	}
	late := make(chan struct{})
	if s.options.AfterFunc == nil {
		<-gone
		return ctx.Err()
	}
	stopLate := s.options.AfterFunc(cutOffWithin, func() { close(late) })
	defer stopLate()
	select {
	case <-gone:
	case <-late:
	}
	return ctx.Err()
}

// cutOffWithin is how long Shutdown waits for streams that it has cut off.
const cutOffWithin = 250 * time.Millisecond

// endStreams ends each open stream at its own moment within the Drain time.
func (s *Server) endStreams() (stop func()) {
	var stops []func() bool
	s.streams.Range(func(id uint64, st *stream) bool {
		end := func() { st.Close(errDraining()) }
		if at := jitter(id, s.options.Drain); at > 0 && s.options.AfterFunc != nil {
			stops = append(stops, s.options.AfterFunc(at, end))
		} else {
			end()
		}
		return true
	})
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// jitter spreads ids evenly over d: consecutive ones, whose clients came together, fall far from each other (golden
// ratio).
func jitter(id uint64, d time.Duration) time.Duration {
	const golden = 0x9e3779b97f4a7c15
	return time.Duration(float64(d) * (float64(id*golden>>11) / (1 << 53)))
}
