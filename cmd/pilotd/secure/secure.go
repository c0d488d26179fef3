// Package secure assembles what authenticates clients and certifies workloads: the certificate authority, the
// validation of tokens and certificates, and the TLS of the port where both are used.
//
//	client ─► TLS (Serving) ─┬─► Peer ─► authn ─► who it is, for the discovery service
//	                         └─► ca.Service ─► authn; Keeper ─► Authority ─► a certificate
//	Secrets or files ──────────────────────────► Keeper
//	leader: renews the root, writes istio-ca-root-cert into every namespace and the roots into webhooks
//
// Like package discovery it has no flags and opens no port, so that the program and the tests run the same server.
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
	// TrustDomains returns the mesh's trust domains, its own first; none while they are unknown.
	TrustDomains func() []string
	// API is the client of the cluster's API server, Tokens the part of it that reviews tokens; nil for none.
	API    *cluster.API
	Tokens authn.Reviewer
	// Namespace is pilotd's own namespace, ClusterID the name of its cluster, Holder the name of this replica.
	Namespace, ClusterID, Holder string
	// Revision is pilotd's revision, whose webhooks get the roots of its certificate; empty means "default".
	Revision string
	// Lead is more work for the leader, until its context ends; nil for none.
	Lead func(context.Context)
	// External says that another system issues certificates, so that this process has no authority.
	External bool
	// CADir is a directory with an authority. It is used if it contains a key when pilotd starts.
	CADir string
	// CertFile and KeyFile are the certificate to serve; if empty, the authority signs one. RootFile has roots for
	// clients' certificates in addition to the authority's own.
	CertFile, KeyFile, RootFile string
	// Hosts are the DNS names in the serving certificate that the authority signs.
	Hosts []string
	// MinVersion and Ciphers configure TLS; 0 means TLS 1.2, nil means Go's own choice.
	MinVersion uint16
	Ciphers    []uint16
	// Life and MaxLife bound the lifetime of workload certificates; RootLife and RootBits describe a root that is made
	// here.
	Life, MaxLife, RootLife time.Duration
	RootBits                int
	// RenewEvery is the interval of checking whether a root is due for renewal.
	RenewEvery time.Duration
	// Connections is how many connections the file descriptors allow; 0 means unknown. Computing is how many TLS
	// handshakes compute at the same moment.
	Connections, Computing int
	// Signers is how many certificates are signed at once; Asked is how many an identity may ask for in a second. 0
	// means no limit.
	Signers, Asked int
	// Audiences are the accepted audiences of tokens; Issuers are those whose tokens are validated here.
	Audiences []string
	Issuers   []*authn.Issuer
	// NodeAgents are the service accounts of agents that may ask for certificates for pods on their own node.
	NodeAgents []cluster.Account
	// Unchecked lets proxies claim namespaces and service accounts without proof.
	Unchecked bool
	// Now is the clock; Every returns a channel that ticks at an interval.
	Now   func() time.Time
	Every func(time.Duration) <-chan time.Time
	Log   *slog.Logger
}

const (
	// filesEvery is the interval of reading files again.
	filesEvery = 10 * time.Second
	// badTokens bounds the invalid tokens in a second from one address about which the API server, or an issuer, is
	// asked.
	badTokens = 100
	// leaseName is the Lease of the leader. Each revision has a leader of its own.
	leaseName = "pilotd-leader"
)

// Server authenticates clients and certifies workloads.
type Server struct {
	// Immutable after New.
	options       Options
	authenticator *authn.Authenticator
	vigil         *vigil
	Keeper        *ca.Keeper
	serving       *Serving
	service       *ca.Service         // nil if another system is the authority
	secrets       *cluster.Authority  // nil unless the authority is in Secrets
	agents        *cluster.NodeAgents // nil if there are none
	files         bool                // the authority is in CADir
	rootsChanged  [2]chan struct{}    // wakes the writer of roots to namespaces, and to webhooks

	door    atomic.Pointer[handshake.Door] // nil until Listen
	refused [authn.NumReasons]atomic.Uint64

	mu sync.Mutex
	// Guarded by mu.
	own    []*x509.Certificate // from RootFile
	trusts *x509.CertPool      // roots of accepted clients: own, and those of the authority
	of     *ca.Authority       // the authority that trusts was made from
}

// New returns a Server, or an error if files cannot be read. The Server does nothing before Run.
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
	s.vigil = &vigil{authenticator: s.authenticator, now: o.Now, proofs: map[*identity.Proof]*shown{}}
	return s, s.setAuthority()
}

// setAuthority decides which authority is used.
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
		return nil // there is no place to store an authority
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
		settings.ActFor, settings.ByPod = s.agentActsFor, s.agents.Trusts
	}
	s.service = ca.NewService(settings)
	return nil
}

// agentActsFor decides whether a node's agent may ask for a certificate of another identity, and logs refusals, because
// the agent is not told the reason. Requests of callers that are not node agents are not logged: anyone can send them.
func (s *Server) agentActsFor(agent identity.Peer, who identity.Identity) error {
	err := s.agents.MayActFor(agent, who)
	if err != nil && !errors.Is(err, cluster.ErrNoAgent) {
		s.options.Log.Warn("a certificate in the name of somebody else was refused", "caller", agent.Identity,
			"pod", agent.Pod.Name, "name", who, "reason", err)
	}
	return err
}

// root returns the properties of a root that is made here.
func (s *Server) root() ca.Root {
	organization := "cluster.local"
	if domains := s.options.TrustDomains(); len(domains) > 0 {
		organization = domains[0]
	}
	return ca.Root{Organization: organization, Life: s.options.RootLife, Bits: s.options.RootBits}
}

// Serves reports whether there is, or will be, a certificate to serve.
func (s *Server) Serves() bool { return s.options.CertFile != "" || s.service != nil }

// Waiting says what is missing before certificates can be served and signed; empty for nothing.
func (s *Server) Waiting() string {
	if !s.Serves() || s.serving.ready() && (s.service == nil || s.Keeper.Authority() != nil) {
		return ""
	}
	if err := s.Keeper.Problem(); err != nil {
		return err.Error()
	}
	return "the certificate authority"
}

// TLS returns the configuration of the port. It asks for a client certificate and leaves verification to Peer, because
// a client without one may have a token, and a client with an invalid one should get a clear error. Sessions are not
// resumed, so that each connection presents its certificate.
func (s *Server) TLS() *tls.Config {
	return &tls.Config{ // #nosec G402 -- MinVersion is at least 1.2
		GetCertificate: s.serving.Get, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
		MinVersion: max(s.options.MinVersion, tls.VersionTLS12), CipherSuites: s.options.Ciphers,
		NextProtos: []string{"h2"},
	}
}

// Register adds the certificate service, if there is one, to the grpc server of the port.
func (s *Server) Register(g *grpc.Server, streams *grpcstream.Server) {
	if s.service != nil {
		s.service.Register(g, streams.Use)
	}
}

// Peer returns what the client of a stream has proven about itself: nothing over plain text.
func (s *Server) Peer(ctx context.Context) (proxy.Peer, error) {
	if _, secured := grpcstream.PeerInfo(ctx).(credentials.TLSInfo); !secured {
		return proxy.Peer{}, nil
	}
	c := credentialsOf(ctx)
	p, err := s.authenticator.Authenticate(ctx, c)
	if err == nil {
		p.Proof = s.vigil.proof(ctx, c)
	}
	return proxy.Peer{Peer: p, Unchecked: s.options.Unchecked}, err
}

// caller returns who opened the stream of ctx.
func (s *Server) caller(ctx context.Context) (identity.Peer, error) {
	return s.authenticator.Authenticate(ctx, credentialsOf(ctx))
}

// credentialsOf returns what the client of a stream, or of a call, has shown.
func credentialsOf(ctx context.Context) (c authn.Credentials) {
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
	return c
}

// roots returns the roots of accepted clients; nil while they are unknown.
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
