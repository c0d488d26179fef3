package ca

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// Bounds of what calls cost.
const (
	// callTime is how long a call may take, all in all.
	callTime = 30 * time.Second
	// MaxRequest is the largest request, in bytes. Agents send some 1,200.
	MaxRequest = 64 << 10
	// maxCalls is how many calls there may be at once, and maxOwn how many of one identity.
	maxCalls = 1 << 15
	maxOwn   = 1 << 12
	// maxUnknown is how many calls there may be at once of an address, of callers that are not known yet; there may be
	// maxCalls of all addresses.
	maxUnknown = maxCalls / 2
)

// ServiceOptions are the settings of a Service.
type ServiceOptions struct {
	// Authenticate says who calls; its error is a status.
	Authenticate func(context.Context) (identity.Peer, error)
	// Authority is who signs now; nil while that is not known.
	Authority func() *Authority
	// Life is for how long certificates are good when nothing is asked for, MaxLife the longest that may be asked for.
	Life, MaxLife time.Duration
	// Signers is how many sign at once; 0 means 1. Those who wait are signed for in rounds, one of each identity.
	Signers int
	// Rate bounds how often each identity asks; nil is no limit.
	Rate *quota.Rate
	// ActFor says whether a caller may ask in the name of somebody else; the error is not shown to it, and one that wraps
	// ErrLater is not for good. It must not block. Nil lets nobody do so.
	ActFor func(caller identity.Peer, who identity.Identity) error
	// Receive reads a call's request; nil means grpc's own way.
	Receive func(grpc.ServerStream, *securityv1.IstioCertificateRequest) error
	// Now is the clock.
	Now func() time.Time
}

// ErrLater reports that it is not known yet who may ask in whose name.
var ErrLater = errors.New("who runs where is not known yet")

// Outcome is how a call ended. Its name is a label of a metric.
type Outcome uint8

// The outcomes.
const (
	Issued          Outcome = iota // a certificate
	Unauthenticated                // the caller has not proven who it is
	Denied                         // the caller asks in the name of somebody else
	Malformed                      // a request that cannot be read, a key that is not signed
	TooLong                        // a life beyond the longest
	TooMany                        // too many calls at once
	TooOften                       // too many calls of one identity in a short time
	Late                           // it was not its turn, or the request did not come, in time
	NotReady                       // there is no authority, or it cannot sign

	// NumOutcomes is how many there are.
	NumOutcomes = 9
)

// String returns the outcome's name.
func (o Outcome) String() string {
	return [NumOutcomes]string{"issued", "unauthenticated", "denied", "malformed", "too_long", "too_many",
		"too_often", "late", "not_ready"}[o]
}

// Service is istio.v1.auth.IstioCertificateService. A call is a goroutine of its own: it waits for its caller to be
// known, for the request, and for a signer, and ends after callTime whatever happens. The number of signers bounds the
// processors that signing takes from everything else.
type Service struct {
	// Immutable after NewService.
	options ServiceOptions
	turns   *quota.Turns
	unknown *quota.Share // calls of callers that are being found out, by address
	calls   *quota.Share

	outcomes [NumOutcomes]atomic.Uint64
}

// NewService makes a Service.
func NewService(o ServiceOptions) *Service {
	return &Service{options: o, turns: quota.NewTurns(o.Signers), calls: quota.NewShare(maxCalls, maxOwn),
		unknown: quota.NewShare(maxCalls, maxUnknown)}
}

// Outcomes returns how many calls ended in which way.
func (s *Service) Outcomes() (out [NumOutcomes]uint64) {
	for o := range out {
		out[o] = s.outcomes[o].Load()
	}
	return out
}

// Register adds the service to a grpc server. use is told of each call while it lasts; its error ends the call.
//
// It is described as a stream, which is the same on the wire: so a caller is known, and has its turn, before what it
// sends is read.
func (s *Service) Register(g *grpc.Server, use func(context.Context) (end func(), err error)) {
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "istio.v1.auth.IstioCertificateService", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "CreateCertificate", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, ss grpc.ServerStream) error {
				end, err := use(ss.Context())
				if err != nil {
					return err
				}
				defer end()
				return s.call(ss)
			}}},
		Metadata: "security/v1alpha1/ca.proto",
	}, s)
}

// failure is a call's end without a certificate.
type failure struct {
	outcome Outcome
	code    codes.Code
	text    string
}

// Error returns what the caller is told.
func (f *failure) Error() string { return f.text }

func (s *Service) call(ss grpc.ServerStream) error {
	ctx, cancel := context.WithTimeout(ss.Context(), callTime)
	defer cancel()
	chain, err := s.create(ctx, ss)
	if err == nil {
		s.outcomes[Issued].Add(1)
		return ss.SendMsg(&securityv1.IstioCertificateResponse{CertChain: chain})
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{Unauthenticated, status.Code(err), "request authenticate failure: " + status.Convert(err).Message()}
	}
	s.outcomes[f.outcome].Add(1)
	return status.Error(f.code, f.text)
}

// create answers one call.
func (s *Service) create(ctx context.Context, ss grpc.ServerStream) ([]string, error) {
	known, err := s.authenticate(ctx)
	if err != nil {
		return nil, err
	}
	caller := quota.Of(known.Identity, nil)
	if !s.options.Rate.Take(caller, 1) {
		return nil, &failure{TooOften, codes.ResourceExhausted, "certificates are asked for too often"}
	}
	if !s.calls.Enter(caller) {
		return nil, tooMany()
	}
	defer s.calls.Leave(caller)
	r, err := s.receive(ctx, ss)
	if err != nil {
		return nil, err
	}
	life, err := s.check(r)
	if err != nil {
		return nil, err
	}
	who, err := s.named(known, r)
	if err != nil {
		return nil, err
	}
	if err := s.turns.Wait(ctx, caller); err != nil {
		return nil, &failure{Late, codes.Unavailable, "too many certificates are being signed"}
	}
	defer s.turns.Done()
	return s.sign(who, r, life)
}

// named returns whose name the certificate is to have: the caller's, or that of whom it may act for.
func (s *Service) named(caller identity.Peer, r *securityv1.IstioCertificateRequest) (identity.Identity, error) {
	text := r.GetMetadata().GetFields()["ImpersonatedIdentity"].GetStringValue()
	if text == "" {
		return caller.Identity, nil
	}
	if s.options.ActFor == nil {
		return identity.Identity{}, &failure{Denied, codes.PermissionDenied,
			"ImpersonatedIdentity: nobody may ask in the name of others here"}
	}
	who, err := identity.Parse(text)
	if err != nil || who.TrustDomain != caller.Identity.TrustDomain {
		return identity.Identity{}, &failure{Malformed, codes.InvalidArgument,
			"ImpersonatedIdentity: want spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT of the caller's trust domain"}
	}
	switch err := s.options.ActFor(caller, who); {
	case errors.Is(err, ErrLater):
		return identity.Identity{}, &failure{NotReady, codes.Unavailable, "ImpersonatedIdentity: " + ErrLater.Error()}
	case err != nil:
		return identity.Identity{}, &failure{Denied, codes.PermissionDenied,
			"ImpersonatedIdentity: the caller may not ask in this name"}
	}
	return who, nil
}

// authenticate finds out who calls. That may take long where somebody is asked, so those who wait for it are bounded.
func (s *Service) authenticate(ctx context.Context) (identity.Peer, error) {
	from := quota.Of(identity.Identity{}, nil)
	if p, ok := peer.FromContext(ctx); ok {
		from = quota.Of(identity.Identity{}, p.Addr)
	}
	if !s.unknown.Enter(from) {
		return identity.Peer{}, tooMany()
	}
	defer s.unknown.Leave(from)
	return s.options.Authenticate(ctx)
}

func tooMany() *failure {
	return &failure{TooMany, codes.ResourceExhausted, "too many certificates are being asked for"}
}

// receive reads the request. Its goroutine ends with the call at the latest: grpc ends a stream's reads when its
// handler has returned.
func (s *Service) receive(ctx context.Context, ss grpc.ServerStream) (*securityv1.IstioCertificateRequest, error) {
	r := &securityv1.IstioCertificateRequest{}
	came := make(chan error, 1)
	go func() {
		if s.options.Receive != nil {
			came <- s.options.Receive(ss, r)
			return
		}
		came <- ss.RecvMsg(r)
	}()
	select {
	case err := <-came:
		switch {
		case err == nil:
			return r, nil
		case status.Code(err) == codes.ResourceExhausted:
			return nil, &failure{Malformed, codes.ResourceExhausted, "the request is too large"}
		}
		return nil, &failure{Malformed, codes.InvalidArgument, "the request cannot be read"}
	case <-ctx.Done():
		return nil, &failure{Late, codes.DeadlineExceeded, "the request did not come in time"}
	}
}

// check refuses what is not served, and says for how long the certificate is to be good.
func (s *Service) check(r *securityv1.IstioCertificateRequest) (time.Duration, error) {
	fields := r.GetMetadata().GetFields()
	if fields["CertSigner"].GetStringValue() != "" {
		return 0, &failure{Malformed, codes.InvalidArgument, "CertSigner: certificates of other signers are not served"}
	}
	switch seconds := r.GetValidityDuration(); {
	case seconds <= 0:
		return s.options.Life, nil
	case seconds > int64(s.options.MaxLife/time.Second):
		return 0, &failure{TooLong, codes.InvalidArgument, "validity_duration: the longest is " + s.options.MaxLife.String()}
	default:
		return time.Duration(seconds) * time.Second, nil
	}
}

// sign does everything that costs much: its caller has waited for its turn.
func (s *Service) sign(who identity.Identity, r *securityv1.IstioCertificateRequest,
	life time.Duration) ([]string, error) {
	key, err := keyOf(r.GetCsr())
	if err != nil {
		return nil, &failure{Malformed, codes.InvalidArgument, "csr: " + err.Error()}
	}
	a := s.options.Authority()
	if a == nil {
		return nil, &failure{NotReady, codes.Unavailable, "the certificate authority is not ready"}
	}
	chain, err := a.Sign(Request{Key: key, Who: who, Life: life}, s.options.Now())
	if err != nil {
		return nil, &failure{NotReady, codes.Unavailable, "the certificate authority cannot sign"}
	}
	return chain, nil
}
