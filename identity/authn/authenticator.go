package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// Credentials are what a client shows.
type Credentials struct {
	// Certificates are those of its connection, its own first. That it has the key is proven by the handshake; nothing
	// else of them has been checked.
	Certificates []*x509.Certificate
	// Token is its bearer token; empty for none.
	Token string
	// ClusterID is the cluster that it says its token is from; empty for this one.
	ClusterID string
	// From is the address that it comes from.
	From net.Addr
}

// Options are the settings of an Authenticator.
type Options struct {
	// TrustDomains are those whose identities are let in, the mesh's own first; none while that is not known.
	TrustDomains func() []string
	// Roots are who may sign clients' certificates; nil while that is not known.
	Roots func() *x509.CertPool
	// Tokens is who is asked about tokens; nil for nobody.
	Tokens Reviewer
	// Audiences are those that tokens are to be meant for, any of them.
	Audiences []string
	// Issuers make tokens that are checked here.
	Issuers []*Issuer
	// ClusterID is the cluster that Tokens knows.
	ClusterID string
	// Now is the clock.
	Now func() time.Time
	// Refused is told of each refusal. It must not block. It may be nil.
	Refused func(Reason)
	// Checks is how many certificates are checked at once; 0 means 1. Those who wait go on in rounds, one of each address.
	Checks int
	// BadTokens bounds for how many tokens a second from one address somebody is asked in vain; nil is no limit.
	BadTokens *quota.Rate
}

// Authenticator finds out who clients are. Safe for concurrent use.
type Authenticator struct {
	// Immutable after New.
	options Options
	reviews *reviews
	checks  *quota.Turns
}

// New makes an Authenticator.
func New(o Options) *Authenticator {
	return &Authenticator{options: o, reviews: newReviews(o), checks: quota.NewTurns(o.Checks)}
}

// Authenticate finds out who a client is. The error is a *Refusal. It may block while somebody is asked about a token.
func (a *Authenticator) Authenticate(ctx context.Context, c Credentials) (identity.Peer, error) {
	p, err := a.check(ctx, c)
	if err == nil {
		return p, nil
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{ReasonMalformed, err.Error()}
	}
	if f := a.options.Refused; f != nil {
		f(r.Reason)
	}
	return identity.Peer{}, r
}

func (a *Authenticator) check(ctx context.Context, c Credentials) (identity.Peer, error) {
	if len(c.Certificates) == 0 && c.Token == "" {
		return identity.Peer{}, &Refusal{ReasonMissing, "neither a client certificate nor a token"}
	}
	domains := a.options.TrustDomains()
	if len(domains) == 0 {
		return identity.Peer{}, &Refusal{ReasonUnavailable, "the mesh's trust domain is not known yet"}
	}
	if len(c.Certificates) > 0 {
		return a.ofCertificate(ctx, c, domains)
	}
	return a.ofToken(ctx, c, domains[0])
}

// ofCertificate returns the identity that a certificate names, if somebody who is trusted has signed that.
func (a *Authenticator) ofCertificate(ctx context.Context, c Credentials, domains []string) (identity.Peer, error) {
	roots := a.options.Roots()
	if roots == nil {
		return identity.Peer{}, &Refusal{ReasonUnavailable, "whose certificates to trust is not known yet"}
	}
	if err := a.signed(ctx, c, roots); err != nil {
		return identity.Peer{}, err
	}
	leaf := c.Certificates[0]
	if len(leaf.URIs) != 1 {
		return identity.Peer{}, &Refusal{ReasonMalformed, "the client certificate must have exactly one URI as its name"}
	}
	who, err := identity.Parse(leaf.URIs[0].String())
	if err != nil {
		return identity.Peer{}, &Refusal{ReasonMalformed, "the client certificate names no service account"}
	}
	if !slices.Contains(domains, who.TrustDomain) {
		return identity.Peer{}, &Refusal{ReasonTrustDomain, "the client certificate is of another trust domain"}
	}
	return identity.Peer{Identity: who, Until: leaf.NotAfter}, nil
}
