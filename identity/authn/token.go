package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// Bounds of what tokens cost.
const (
	// maxToken is the longest token, in bytes. Those of Kubernetes have some 1,000.
	maxToken = 8 << 10
	// askTime is how long an answer about a token may take, waiting for a turn included.
	askTime = 10 * time.Second
	// maxAsked is how many different tokens the API server, or an issuer, is asked about at once.
	maxAsked = 32
	// maxKnown is how many tokens are remembered.
	maxKnown = 1 << 16
	// goodFor and badFor are for how long an answer is kept.
	goodFor = time.Minute
	badFor  = 10 * time.Second
)

// Review is what an API server says of a token.
type Review struct {
	// Good reports whether the token is good for one of the audiences.
	Good bool
	// User is whose it is.
	User string
	// Pod is the pod that it is bound to; the zero value for none.
	Pod identity.Pod
}

// Reviewer asks the API server that makes tokens. The error means that it has not answered.
type Reviewer interface {
	Review(ctx context.Context, token string, audiences []string) (Review, error)
}

// reviews asks about tokens, and remembers the answers.
type reviews struct {
	// Immutable after newReviews.
	options Options
	known   *cache.LRUExpireCache // by hash of a token: answer; by chainHash: refusedChain
	flights *singleflight.Group
	turns   chan struct{} // at the API server
}

// answer is what is known of a token.
type answer struct {
	peer identity.Peer
	err  error
}

// clock is the time as the cache asks for it.
type clock func() time.Time

// Now returns what time it is.
func (c clock) Now() time.Time { return c() }

func newReviews(o Options) *reviews {
	return &reviews{options: o, known: cache.NewLRUExpireCacheWithClock(maxKnown, clock(o.Now)),
		flights: &singleflight.Group{}, turns: make(chan struct{}, maxAsked)}
}

// ofToken returns the identity that a client's token is for.
func (a *Authenticator) ofToken(ctx context.Context, c Credentials, domain string) (identity.Peer, error) {
	if len(c.Token) > maxToken {
		return identity.Peer{}, &Refusal{ReasonMalformed, "the token is too long"}
	}
	claims, readable := unverified(c.Token)
	issuer := a.issuerOf(claims)
	if issuer == nil {
		if err := a.worthAsking(c, claims, readable); err != nil {
			return identity.Peer{}, err
		}
	}
	// The trust domain is part of the answer.
	key := sha256.Sum256([]byte(domain + "\x00" + c.Token))
	if known, ok := a.reviews.known.Get(key); ok {
		return known.(answer).peer, known.(answer).err
	}
	from := quota.Of(identity.Identity{}, c.From)
	if !a.options.BadTokens.Take(from, 0) {
		return identity.Peer{}, &Refusal{ReasonOften, "too many bad tokens have come from this address"}
	}
	q := question{key, a.reviews.turns, func(ctx context.Context) (identity.Peer, error) {
		return a.reviews.review(ctx, c.Token, claims, domain)
	}}
	if issuer != nil {
		q.turns, q.ask = issuer.turns, func(ctx context.Context) (identity.Peer, error) {
			return issuer.verify(ctx, c.Token, domain)
		}
	}
	peer, err := a.reviews.ask(ctx, q)
	if r, ok := err.(*Refusal); ok && r.Reason != ReasonUnavailable {
		a.options.BadTokens.Take(from, 1)
	}
	return peer, err
}

// Revocable reports whether what a client has shown can be taken back before it expires: it is a token of which the API
// server says whether it is good.
func (a *Authenticator) Revocable(c Credentials) bool {
	if len(c.Certificates) > 0 || c.Token == "" || a.options.Tokens == nil {
		return false
	}
	claims, _ := unverified(c.Token)
	return a.issuerOf(claims) == nil
}

// worthAsking refuses what an API server would refuse, without asking it. What a token says of itself is believed here
// only where it speaks against it.
func (a *Authenticator) worthAsking(c Credentials, claims jwt.Claims, readable bool) error {
	switch {
	case a.options.Tokens == nil:
		return &Refusal{ReasonToken, "nobody here knows the token's issuer"}
	case c.ClusterID != "" && c.ClusterID != a.options.ClusterID:
		return &Refusal{ReasonCluster, "the token's cluster is not known"}
	case readable && claims.Expiry != nil && !a.options.Now().Before(claims.Expiry.Time()):
		return &Refusal{ReasonExpired, "the token has expired"}
	case readable && !meant(claims, a.options.Audiences):
		return &Refusal{ReasonAudience, "the token is meant for another audience"}
	}
	return nil
}

// meant reports whether a token is for one of the audiences.
func meant(c jwt.Claims, audiences []string) bool {
	return slices.ContainsFunc(audiences, c.Audience.Contains)
}

// unverified returns what a token says of itself, which may be a lie; false when it is no JWT.
func unverified(token string) (claims jwt.Claims, ok bool) {
	parsed, err := jwt.ParseSigned(token, algorithms())
	if err != nil {
		return jwt.Claims{}, false
	}
	err = parsed.UnsafeClaimsWithoutVerification(&claims)
	return claims, err == nil
}

// algorithms returns the algorithms that tokens may be signed with: none that shares the key.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256,
		jose.ES384, jose.ES512, jose.EdDSA}
}

// question is whose token it is.
type question struct {
	key   [sha256.Size]byte
	turns chan struct{} // of who is asked: one that does not answer holds nobody up but who asks it
	ask   func(context.Context) (identity.Peer, error)
}

// ask finds out whose token it is, once for all who show it at the same time, and remembers the answer. It goes on when
// its first caller is gone.
func (r *reviews) ask(ctx context.Context, q question) (identity.Peer, error) {
	flight := r.flights.DoChan(string(q.key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		defer cancel()
		select {
		case q.turns <- struct{}{}:
			defer func() { <-q.turns }()
		case <-ctx.Done():
			return answer{err: &Refusal{ReasonUnavailable, "too many tokens are being checked"}}, nil
		}
		peer, err := q.ask(ctx)
		r.remember(q.key, answer{peer, err})
		return answer{peer, err}, nil
	})
	select {
	case got := <-flight:
		a := got.Val.(answer)
		return a.peer, a.err
	case <-ctx.Done():
		return identity.Peer{}, &Refusal{ReasonUnavailable, "the token could not be checked in time"}
	}
}

// remember keeps an answer for as long as it may be believed.
func (r *reviews) remember(key [sha256.Size]byte, a answer) {
	var refused *Refusal
	switch {
	case errors.As(a.err, &refused) && refused.Reason == ReasonUnavailable:
	case a.err != nil:
		r.known.Add(key, a, badFor)
	default:
		keep := goodFor
		if !a.peer.Until.IsZero() {
			keep = min(keep, a.peer.Until.Sub(r.options.Now()))
		}
		if keep > 0 {
			r.known.Add(key, a, keep)
		}
	}
}

// review asks the API server about a token.
func (r *reviews) review(ctx context.Context, token string, claims jwt.Claims, domain string) (identity.Peer, error) {
	said, err := r.options.Tokens.Review(ctx, token, r.options.Audiences)
	if err != nil {
		return identity.Peer{}, &Refusal{ReasonUnavailable, "the API server was asked about the token and did not answer"}
	}
	if !said.Good {
		return identity.Peer{}, &Refusal{ReasonToken, "the API server does not vouch for the token"}
	}
	who, err := ofUser(domain, said.User)
	if err != nil {
		return identity.Peer{}, err
	}
	p := identity.Peer{Identity: who, Pod: said.Pod}
	if claims.Expiry != nil { // the API server has vouched for it
		p.Until = claims.Expiry.Time()
	}
	return p, nil
}

// ofUser returns the identity of a service account by its name as a user of the API server.
func ofUser(domain, user string) (identity.Identity, error) {
	namespace, account, ok := identity.OfUser(user)
	if !ok {
		return identity.Identity{}, &Refusal{ReasonToken, "the token is not a service account's"}
	}
	who, err := identity.New(domain, namespace, account)
	if err != nil {
		return identity.Identity{}, &Refusal{ReasonToken,
			"the token's service account has a name that no identity can have"}
	}
	return who, nil
}
