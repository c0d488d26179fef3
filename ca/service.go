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

// Bounds on the cost of calls.
const (
	// callTime is how long a call may take in total.
	callTime = 30 * time.Second
	// MaxRequest is the largest request in bytes. Agents send about 1,200.
	MaxRequest = 64 << 10
	// maxCalls is how many calls may be in progress, and maxOwn how many of one identity.
	maxCalls = 1 << 15
	maxOwn   = 1 << 12
	// maxUnknown is how many calls of one address may be in progress whose callers are not authenticated yet; for all
	// addresses together the bound is maxCalls.
	maxUnknown = maxCalls / 2
)

// ServiceOptions are the settings of a Service.
type ServiceOptions struct {
	// Authenticate returns who calls. Its error is a gRPC status.
	Authenticate func(context.Context) (identity.Peer, error)
	// Authority returns the authority in force, or nil if there is none yet.
	Authority func() *Authority
	// Life is the default lifetime of certificates, MaxLife the longest that a caller may ask for.
	Life, MaxLife time.Duration
	// Signers is how many goroutines sign at the same time; 0 means 1. Calls that wait are served in rounds, one of
	// each identity.
	Signers int
	// Rate limits how often each identity may call; nil means no limit.
	Rate *quota.Rate
	// ActFor returns nil if a caller may ask for a certificate for another identity. The caller does not see its error;
	// one that wraps ErrLater is temporary. It must not block. nil means that no caller may.
	ActFor func(caller identity.Peer, who identity.Identity) error
	// ByPod reports whether the pods of an identity are charged one by one: those of the agents of nodes, which all have
	// one identity, so that one agent does not use up what the agents of other nodes need. nil means none.
	ByPod func(identity.Identity) bool
	// Receive reads the request of a call. nil means grpc's RecvMsg.
	Receive func(grpc.ServerStream, *securityv1.IstioCertificateRequest) error
	// Now returns the time.
	Now func() time.Time
}

// ErrLater reports that it is not known yet for which identities the caller may ask.
var ErrLater = errors.New("who runs where is not known yet")

// Outcome says how a call ended. Its name is the label of a metric.
type Outcome uint8

// The outcomes.
const (
	Issued          Outcome = iota // the call returned a certificate
	Unauthenticated                // the caller could not be authenticated
	Denied                         // the caller may not ask for that identity
	Malformed                      // the request cannot be parsed, or its key is not acceptable
	TooLong                        // the requested lifetime is longer than MaxLife
	TooMany                        // too many calls are in progress
	TooOften                       // the identity exceeds its rate
	Late                           // callTime passed before its turn or before its request came
	NotReady                       // there is no authority, or it has expired

	// NumOutcomes is the number of outcomes.
	NumOutcomes = 9
)

// String returns the outcome's name.
func (o Outcome) String() string {
	return [NumOutcomes]string{"issued", "unauthenticated", "denied", "malformed", "too_long", "too_many",
		"too_often", "late", "not_ready"}[o]
}

// Service implements istio.v1.auth.IstioCertificateService. Each call runs on its own goroutine: it waits for its
// caller to be authenticated, for the request and for a signer, and ends after callTime at the latest. The number of
// signers limits how many processors signing takes from other work.
type Service struct {
	// Immutable after NewService.
	options ServiceOptions
	turns   *quota.Turns
	unknown *quota.Share // calls that are being authenticated, by address
	calls   *quota.Share

	outcomes [NumOutcomes]atomic.Uint64
}

// NewService makes a Service.
func NewService(o ServiceOptions) *Service {
	return &Service{options: o, turns: quota.NewTurns(o.Signers), calls: quota.NewShare(maxCalls, maxOwn),
		unknown: quota.NewShare(maxCalls, maxUnknown)}
}

// Outcomes returns how many calls ended with each outcome.
func (s *Service) Outcomes() (out [NumOutcomes]uint64) {
	for o := range out {
		out[o] = s.outcomes[o].Load()
	}
	return out
}

// Register adds the service to a gRPC server. It calls use at the start of each call and end at its end; an error of
// use ends the call.
//
// The method is registered as a stream, which is the same on the wire, so that the caller is authenticated and has its
// turn before its request is read.
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

// failure is an error of a call, with its outcome.
type failure struct {
	outcome Outcome
	code    codes.Code
	text    string
}

// Error returns the text that the caller sees.
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

// create handles one call.
func (s *Service) create(ctx context.Context, ss grpc.ServerStream) ([]string, error) {
	known, err := s.authenticate(ctx)
	if err != nil {
		return nil, err
	}
	caller := quota.Of(known.Identity, nil)
	if s.options.ByPod != nil && known.Pod.UID != "" && s.options.ByPod(known.Identity) {
		caller = quota.OfPod(known.Identity, known.Pod)
	}
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

// named returns the identity for the certificate: the caller's, or another one for which the caller may ask.
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

// authenticate returns who calls. It may take long when it asks an API server, so the calls that wait here are bounded.
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

// receive reads the request on a goroutine of its own. That ends with the call at the latest, because grpc ends the
// stream's reads when its handler returns.
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

// check refuses requests that are not served, and returns the lifetime of the certificate.
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

// sign does all costly work of a call. Its caller has waited for its turn.
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
