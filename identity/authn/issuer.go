package authn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/time/rate"

	"github.com/pilotd/pilotd/identity"
)

const (
	// maxKeys is how large what an issuer answers may be, in bytes.
	maxKeys = 1 << 20
	// keysTime is how long an issuer may take to answer.
	keysTime = 5 * time.Second
)

// Issuer makes tokens whose subject is system:serviceaccount:NAMESPACE:NAME, and which are checked here with the keys
// that it publishes. Safe for concurrent use.
type Issuer struct {
	// Immutable after NewIssuer.
	url       string
	audiences []string
	client    *http.Client
	now       func() time.Time
	turns     chan struct{} // of those who ask

	mu chan struct{} // who has put something in may go on: unlike a Mutex it is waited for with a limit
	// Guarded by mu.
	verifier *oidc.IDTokenVerifier // nil until the issuer has said where its keys are
}

// NewIssuer returns the issuer with this URL. Its keys are at keysURL; when that is empty the issuer is asked, on first
// use, where they are. Its tokens are to be meant for one of the audiences.
func NewIssuer(issuer, keysURL string, audiences []string, now func() time.Time) *Issuer {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.IdleConnTimeout = 2, keysTime
	i := &Issuer{url: issuer, audiences: audiences, now: now, turns: make(chan struct{}, maxAsked),
		mu:     make(chan struct{}, 1),
		client: &http.Client{Transport: modest{transport, rate.NewLimiter(1, 5)}, Timeout: keysTime}}
	if keysURL != "" {
		i.verifier = i.withKeys(keysURL)
	}
	return i
}

// withKeys checks tokens with the keys at a URL. The audience is left to verify: there may be several.
func (i *Issuer) withKeys(where string) *oidc.IDTokenVerifier {
	c := &oidc.Config{SkipClientIDCheck: true, Now: i.now}
	for _, a := range algorithms() {
		c.SupportedSigningAlgs = append(c.SupportedSigningAlgs, string(a))
	}
	return oidc.NewVerifier(i.url, keys{oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), i.client), where)},
		c)
}

// unanswered is the key of a context's *bool that keys sets when they could not be fetched: the verifier's error does
// not tell that from a bad signature.
type unanswered struct{}

// keys are an issuer's keys.
type keys struct{ oidc.KeySet }

// VerifySignature asks the key set.
func (k keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	var failed *url.Error
	if away, ok := ctx.Value(unanswered{}).(*bool); ok && (errors.As(err, &failed) || ctx.Err() != nil) {
		*away = true
	}
	return payload, err
}

// issuerOf returns the issuer that a token names; nil if it is not known.
func (a *Authenticator) issuerOf(c jwt.Claims) *Issuer {
	for _, i := range a.options.Issuers {
		if c.Issuer == i.url {
			return i
		}
	}
	return nil
}

// verify returns the identity that a token is for.
func (i *Issuer) verify(ctx context.Context, token, domain string) (identity.Peer, error) {
	v, err := i.ready(ctx)
	if err != nil {
		return identity.Peer{}, &Refusal{ReasonUnavailable, "the token's issuer does not say where its keys are"}
	}
	away := false
	t, err := v.Verify(context.WithValue(ctx, unanswered{}, &away), token)
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return identity.Peer{}, &Refusal{ReasonExpired, "the token has expired"}
	case away:
		return identity.Peer{}, &Refusal{ReasonUnavailable, "the token's issuer does not answer"}
	case err != nil:
		return identity.Peer{}, &Refusal{ReasonToken, "the token is not signed by its issuer"}
	case !slices.ContainsFunc(i.audiences, func(a string) bool { return slices.Contains(t.Audience, a) }):
		return identity.Peer{}, &Refusal{ReasonAudience, "the token is meant for another audience"}
	}
	who, err := ofUser(domain, t.Subject)
	if err != nil {
		return identity.Peer{}, err
	}
	return identity.Peer{Identity: who, Until: t.Expiry}, nil
}

// ready returns the verifier; the first caller waits for the issuer to say where its keys are, and others for it.
func (i *Issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	select {
	case i.mu <- struct{}{}:
		defer func() { <-i.mu }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if i.verifier != nil {
		return i.verifier, nil
	}
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	if err != nil {
		return nil, err
	}
	var says struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&says); err != nil {
		return nil, err
	}
	i.verifier = i.withKeys(says.Keys)
	return i.verifier, nil
}

// modest asks an issuer no more often than once a second, for anybody can make a token that names an unknown key of it;
// an answer that is no success is an error, and one that is larger than maxKeys is cut off.
type modest struct {
	next http.RoundTripper
	rate *rate.Limiter
}

// RoundTrip does what the next transport does.
func (m modest) RoundTrip(r *http.Request) (*http.Response, error) {
	if !m.rate.Allow() {
		return nil, errors.New("asked too often")
	}
	resp, err := m.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("the answer is %s", resp.Status)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxKeys), resp.Body}
	return resp, nil
}
