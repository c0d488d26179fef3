// Package secure puts together what proves and certifies identities: who callers are, the certificate authority, and
// the TLS of the port where both are asked for.
//
//	client ─► TLS (Serving) ─┬─► Peer ─► authn ─► who it is, for the discovery service
//	                         └─► ca.Service ─► authn; Keeper ─► Authority ─► a certificate
//	Secrets or files ──────────────────────────► Keeper
//	leader: renews the root, writes istio-ca-root-cert into every namespace and the roots into webhooks
//
// Like package discovery it has no flags and opens no port, so that the program and the tests run the same thing.
package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/authn"
	"github.com/pilotd/pilotd/identity/quota"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/grpcstream"
	"github.com/pilotd/pilotd/shard/handshake"
)

// Options are the settings of a Server.
type Options struct {
	// TrustDomains are the mesh's, its own first; none while that is not known.
	TrustDomains func() []string
	// API is the cluster's server; nil for none. Tokens is who is asked about tokens, which is the same.
	API    *cluster.API
	Tokens authn.Reviewer
	// Namespace is pilotd's own, ClusterID its cluster's name, Holder this replica's.
	Namespace, ClusterID, Holder string
	// Revision is pilotd's; its webhooks get the roots of its certificate. "default" when empty.
	Revision string
	// Lead is what else the leader does, until its context ends; nil for nothing.
	Lead func(context.Context)
	// External leaves certificates to somebody else: no authority, and none of what it does.
	External bool
	// CADir is a directory with an authority. It counts if there is a key in it when pilotd starts.
	CADir string
	// CertFile and KeyFile are the certificate to serve; one of the authority when empty. RootFile has roots of clients
	// besides the authority's own.
	CertFile, KeyFile, RootFile string
	// Hosts are the names of a serving certificate of the authority.
	Hosts []string
	// MinVersion and Ciphers are TLS's; 0 is 1.2, nil Go's own choice.
	MinVersion uint16
	Ciphers    []uint16
	// Life and MaxLife are those of workloads' certificates, RootLife and RootBits are of a root that is made here.
	Life, MaxLife, RootLife time.Duration
	RootBits                int
	// RenewEvery is how often it is looked whether a root is to be renewed.
	RenewEvery time.Duration
	// Connections is how many connections there may be, by file descriptors; 0 is unknown. Computing is how many TLS
	// handshakes are computed at the same moment.
	Connections, Computing int
	// Signers is how many certificates are signed at once, Asked how many an identity may ask for in a second; 0 is no
	// limit.
	Signers, Asked int
	// Audiences are those that tokens are to be meant for; Issuers make tokens that are checked here.
	Audiences []string
	Issuers   []*authn.Issuer
	// NodeAgents are the service accounts of agents that may ask for certificates of the pods on their own nodes.
	NodeAgents []cluster.Account
	// Unchecked lets proxies claim namespaces and service accounts that they have not proven to be.
	Unchecked bool
	// Now is the clock, Every ticks at intervals.
	Now   func() time.Time
	Every func(time.Duration) <-chan time.Time
	// Log is the logger.
	Log *slog.Logger
}

const (
	// filesEvery is how often files are read again.
	filesEvery = 10 * time.Second
	// badTokens is for how many tokens a second from one address the API server, or an issuer, is asked in vain.
	badTokens = 100
	// leaseName is the Lease of who leads; revisions have leaders of their own.
	leaseName = "pilotd-leader"
)

// Server proves and certifies identities.
type Server struct {
	// Immutable after New.
	options       Options
	authenticator *authn.Authenticator
	Keeper        *ca.Keeper
	serving       *Serving
	service       *ca.Service         // nil where the authority is somebody else's
	secrets       *cluster.Authority  // nil unless the authority is in Secrets
	agents        *cluster.NodeAgents // nil for none
	files         bool                // the authority is in CADir
	rootsChanged  [2]chan struct{}    // for the namespaces' roots, and for webhooks

	door    atomic.Pointer[handshake.Door] // nil until Listen
	refused [authn.NumReasons]atomic.Uint64

	mu sync.Mutex
	// Guarded by mu.
	own    []*x509.Certificate // of RootFile
	trusts *x509.CertPool      // whose clients are let in: own and roots of the authority
	of     *ca.Authority       // whose roots are in trusts
}

// New puts a Server together. It does nothing before Run. It refuses files that cannot be read.
func New(o Options) (*Server, error) {
	s := &Server{options: o, trusts: x509.NewCertPool()}
	for i := range s.rootsChanged {
		s.rootsChanged[i] = make(chan struct{}, 1)
	}
	s.Keeper = ca.NewKeeper(func(*ca.Authority) {
		for _, c := range s.rootsChanged {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	})
	s.serving = &Serving{certFile: o.CertFile, keyFile: o.KeyFile, hosts: o.Hosts, authority: s.Keeper.Authority,
		now: o.Now}
	if o.CertFile != "" {
		if err := s.serving.read(); err != nil {
			return nil, err
		}
	}
	if o.RootFile != "" {
		own, err := readRoots(o.RootFile)
		if err != nil {
			return nil, err
		}
		s.own = own
		s.trusts = poolOf(own)
	}
	s.authenticator = authn.New(authn.Options{TrustDomains: o.TrustDomains, Roots: s.roots, Tokens: o.Tokens,
		Audiences: o.Audiences, Issuers: o.Issuers, ClusterID: o.ClusterID, Now: o.Now,
		Checks:    o.Computing,
		Refused:   func(r authn.Reason) { s.refused[r].Add(1) },
		BadTokens: quota.NewRate(badTokens, o.Now)})
	return s, s.setAuthority()
}

// setAuthority decides where the authority is.
func (s *Server) setAuthority() error {
	o := s.options
	if o.External {
		return nil
	}
	_, files, err := ca.ReadDir(o.CADir)
	if err != nil {
		return err
	}
	switch s.files = files; {
	case files:
		if _, err := os.Stat(filepath.Join(o.CADir, ca.RevocationsName)); err == nil {
			o.Log.Warn("a list of revoked certificates is not served: workloads do not get it", "directory", o.CADir,
				"file", ca.RevocationsName)
		}
	case o.API != nil:
		s.secrets = cluster.NewAuthority(o.API, cluster.AuthorityOptions{Namespace: o.Namespace, Keeper: s.Keeper,
			Root: s.root, Now: o.Now, Log: o.Log})
	default:
		return nil // there is nowhere to keep one
	}
	settings := ca.ServiceOptions{
		Authenticate: s.caller, Authority: s.Keeper.Authority, Life: o.Life, MaxLife: o.MaxLife, Signers: o.Signers,
		Rate: quota.NewRate(o.Asked, o.Now), Now: o.Now,
		Receive: func(ss grpc.ServerStream, r *securityv1.IstioCertificateRequest) error {
			return grpcstream.Receive(ss, ca.MaxRequest, r)
		},
	}
	if o.API != nil && len(o.NodeAgents) > 0 {
		s.agents = cluster.NewNodeAgents(o.API, o.NodeAgents, o.Log)
		settings.ActFor = s.agentActsFor
	}
	s.service = ca.NewService(settings)
	return nil
}

// agentActsFor decides whether an agent of a node may ask in somebody's name, and logs why not, for the agent is not
// told. Of those who are no agents nothing is logged: anybody can be one of them.
func (s *Server) agentActsFor(agent identity.Peer, who identity.Identity) error {
	err := s.agents.MayActFor(agent, who)
	if err != nil && !errors.Is(err, cluster.ErrNoAgent) {
		s.options.Log.Warn("a certificate in the name of somebody else was refused", "caller", agent.Identity,
			"pod", agent.Pod.Name, "name", who, "reason", err)
	}
	return err
}

// root returns what a root is like that is made here.
func (s *Server) root() ca.Root {
	organization := "cluster.local"
	if domains := s.options.TrustDomains(); len(domains) > 0 {
		organization = domains[0]
	}
	return ca.Root{Organization: organization, Life: s.options.RootLife, Bits: s.options.RootBits}
}

// Serves reports whether there is, or will be, a certificate to serve.
func (s *Server) Serves() bool { return s.options.CertFile != "" || s.service != nil }

// Waiting returns what is missing before certificates can be served and signed; empty for nothing.
func (s *Server) Waiting() string {
	if !s.Serves() || s.serving.ready() && (s.service == nil || s.Keeper.Authority() != nil) {
		return ""
	}
	if err := s.Keeper.Problem(); err != nil {
		return err.Error()
	}
	return "the certificate authority"
}

// TLS returns the configuration of the port. Clients' certificates are asked for and left to Peer: a client without one
// may have a token, and one with a bad one is told why. Sessions are not resumed, so that each connection shows what it
// has.
func (s *Server) TLS() *tls.Config {
	return &tls.Config{ // #nosec G402 -- MinVersion is 1.2 at least
		GetCertificate: s.serving.Get, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
		MinVersion: max(s.options.MinVersion, tls.VersionTLS12), CipherSuites: s.options.Ciphers,
		NextProtos: []string{"h2"},
	}
}

// Register adds the certificate service to the grpc server of the port, if it is served.
func (s *Server) Register(g *grpc.Server, streams *grpcstream.Server) {
	if s.service != nil {
		s.service.Register(g, streams.Use)
	}
}

// Peer returns what the client of a stream has proven. Over plaintext that is nothing.
func (s *Server) Peer(ctx context.Context) (proxy.Peer, error) {
	if _, secured := grpcstream.PeerInfo(ctx).(credentials.TLSInfo); !secured {
		return proxy.Peer{}, nil
	}
	p, err := s.caller(ctx)
	return proxy.Peer{Peer: p, Unchecked: s.options.Unchecked}, err
}

// caller returns who has opened the stream of ctx.
func (s *Server) caller(ctx context.Context) (identity.Peer, error) {
	var c authn.Credentials
	if info, ok := grpcstream.PeerInfo(ctx).(credentials.TLSInfo); ok {
		c.Certificates = info.State.PeerCertificates
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		if kind, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(kind, "Bearer") {
			c.Token = strings.TrimSpace(token)
			break
		}
	}
	if p, ok := peer.FromContext(ctx); ok {
		c.From = p.Addr
	}
	if id := md.Get("clusterid"); len(id) > 0 {
		c.ClusterID = id[0]
	}
	return s.authenticator.Authenticate(ctx, c)
}

// roots returns the authorities whose clients are let in; nil while that is not known.
func (s *Server) roots() *x509.CertPool {
	a := s.Keeper.Authority()
	if a == nil && s.service != nil && len(s.own) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a != s.of {
		s.of, s.trusts = a, a.Pool().Clone()
		for _, c := range s.own {
			s.trusts.AddCert(c)
		}
	}
	return s.trusts
}

func poolOf(certs []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}
