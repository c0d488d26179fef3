package dns

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	mdns "github.com/miekg/dns"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
)

const (
	// ttl is how long clients may cache an address of the mesh, in seconds.
	ttl = 30
	// endTime is how long closing waits for queries in progress.
	endTime = time.Second
	// mostAtOnce is how many queries may be forwarded at the same time. More fail.
	mostAtOnce = 512
)

// Server is the pod's DNS proxy.
type Server struct {
	// Immutable after New.
	domain   Domain
	resolver *Resolver
	log      *slog.Logger
	atOnce   chan struct{}

	names atomic.Pointer[Names]
	// Counts are counters for metrics.
	Counts Counts
}

// Counts counts queries, those that were forwarded, and those that failed. Safe for concurrent use.
type Counts struct{ Queries, Passed, Failed atomic.Int64 }

// New returns a Server for a pod.
func New(d Domain, r *Resolver, log *slog.Logger) *Server {
	return &Server{domain: d, resolver: r, log: log, atOnce: make(chan struct{}, mostAtOnce)}
}

// Take replaces the name table.
func (s *Server) Take(table *ndsv1.NameTable) { s.names.Store(Compile(table, s.domain)) }

// Ready reports whether the server has a name table.
func (s *Server) Ready() bool { return s.names.Load() != nil }

// JSON returns all names of the name table, for debugging.
func (s *Server) JSON() []byte {
	if n := s.names.Load(); n != nil {
		return n.JSON()
	}
	return []byte("{}")
}

// Listen opens UDP and TCP ports at each address and answers there until the returned function is called. That function
// waits at most a second for forwarded queries.
func (s *Server) Listen(addresses ...string) (func(), error) {
	var servers []*mdns.Server
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		for _, one := range servers {
			_ = one.ShutdownContext(ctx)
		}
	}
	for _, address := range addresses {
		packets, err := net.ListenPacket("udp", address)
		if err != nil {
			stop()
			return nil, fmt.Errorf("DNS: %w", err)
		}
		streams, err := net.Listen("tcp", address)
		if err != nil {
			packets.Close()
			stop()
			return nil, fmt.Errorf("DNS: %w", err)
		}
		for _, one := range []*mdns.Server{{PacketConn: packets}, {Listener: streams}} {
			network := "udp"
			if one.Listener != nil {
				network = "tcp"
			}
			started := make(chan struct{})
			one.NotifyStartedFunc = func() { close(started) }
			one.Handler = mdns.HandlerFunc(func(w mdns.ResponseWriter, q *mdns.Msg) { s.serve(network, w, q) })
			go func() { _ = one.ActivateAndServe() }()
			<-started
			servers = append(servers, one)
		}
	}
	return stop, nil
}

// serve answers one query.
func (s *Server) serve(network string, w mdns.ResponseWriter, q *mdns.Msg) {
	s.Counts.Queries.Add(1)
	answer := s.answer(context.Background(), network, q)
	if network == "udp" {
		size := mdns.MinMsgSize
		if o := q.IsEdns0(); o != nil {
			size = max(size, int(o.UDPSize()))
		}
		answer.Truncate(size)
	}
	if err := w.WriteMsg(answer); err != nil {
		s.log.Debug("an answer is not written", "error", err)
	}
}

func (s *Server) answer(ctx context.Context, network string, q *mdns.Msg) *mdns.Msg {
	names := s.names.Load()
	if names == nil {
		return new(mdns.Msg).SetRcode(q, mdns.RcodeServerFailure)
	}
	if len(q.Question) == 1 && q.Question[0].Qclass == mdns.ClassINET {
		kind := q.Question[0].Qtype
		found, ok := names.Lookup(q.Question[0].Name, s.resolver.settings().search)
		if ok && (kind == mdns.TypeA || kind == mdns.TypeAAAA) {
			return own(q, found)
		}
	}
	return s.pass(ctx, network, q)
}

// own returns an answer from the name table. A name that has no address of the queried family exists nevertheless, so
// the answer is empty and not NXDOMAIN.
func own(q *mdns.Msg, found Found) *mdns.Msg {
	out := new(mdns.Msg).SetReply(q)
	out.Authoritative, out.RecursionAvailable = true, true
	name := q.Question[0].Name
	header := func(kind uint16) mdns.RR_Header {
		return mdns.RR_Header{Name: name, Rrtype: kind, Class: mdns.ClassINET, Ttl: ttl}
	}
	addresses := shuffled(found.Addresses, q.Question[0].Qtype == mdns.TypeA)
	if found.Alias != "" && len(addresses) > 0 {
		target := mdns.Fqdn(found.Alias)
		out.Answer = append(out.Answer, &mdns.CNAME{Hdr: header(mdns.TypeCNAME), Target: target})
		name = target
	}
	for _, a := range addresses {
		if a.Is4() {
			out.Answer = append(out.Answer, &mdns.A{Hdr: header(mdns.TypeA), A: a.AsSlice()})
		} else {
			out.Answer = append(out.Answer, &mdns.AAAA{Hdr: header(mdns.TypeAAAA), AAAA: a.AsSlice()})
		}
	}
	return out
}

// shuffled returns the addresses of a family in random order, because clients use the first one.
func shuffled(all []netip.Addr, v4 bool) (out []netip.Addr) {
	for _, a := range all {
		if a.Is4() == v4 {
			out = append(out, a)
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// pass forwards a query to the pod's DNS servers.
func (s *Server) pass(ctx context.Context, network string, q *mdns.Msg) *mdns.Msg {
	select {
	case s.atOnce <- struct{}{}:
		defer func() { <-s.atOnce }()
	default:
		s.Counts.Failed.Add(1)
		return new(mdns.Msg).SetRcode(q, mdns.RcodeServerFailure)
	}
	s.Counts.Passed.Add(1)
	answer, err := s.resolver.ask(ctx, network, q)
	if err != nil {
		s.Counts.Failed.Add(1)
		s.log.Debug("a query is not answered", "error", err)
		return new(mdns.Msg).SetRcode(q, mdns.RcodeServerFailure)
	}
	answer.Id = q.Id
	return answer
}
