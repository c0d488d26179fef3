package secure

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/authn"
)

const (
	// askedAgain is how long an answer about the token of a stream with secrets counts, and vigilEvery how often it is
	// looked for those that are to be asked about again.
	askedAgain, vigilEvery = 5 * time.Minute, 20 * time.Second
	// askedAtOnce is how many tokens are asked about at once.
	askedAtOnce = 8
)

// vigil asks again about the tokens of streams whose clients ask for secrets: the API server may have revoked them. A
// token that is revoked takes the right to secrets from its stream, and nothing else. While the API server does not
// answer, what it said before counts; then nobody can say either who may list Secrets, which ends the right as well.
type vigil struct {
	// Immutable.
	authenticator *authn.Authenticator
	now           func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	proofs map[*identity.Proof]*shown
}

// shown is what the client of a stream has shown.
type shown struct {
	credentials authn.Credentials
	at          time.Time // when it was asked about
}

// proof returns the Proof of a stream whose client has shown a token; nil if nobody can take back what it has shown.
func (v *vigil) proof(ctx context.Context, c authn.Credentials) *identity.Proof {
	if !v.authenticator.Revocable(c) {
		return nil
	}
	at := v.now()
	return identity.NewProof(func(p *identity.Proof) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.proofs[p] = &shown{credentials: c, at: at}
		context.AfterFunc(ctx, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			delete(v.proofs, p)
		})
	})
}

// run asks again until ctx ends.
func (v *vigil) run(ctx context.Context, tick <-chan time.Time) {
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, askedAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		for p, c := range v.due() {
			select {
			case <-ctx.Done():
				return
			case room <- struct{}{}:
			}
			all.Go(func() {
				defer func() { <-room }()
				v.ask(ctx, p, c)
			})
		}
	}
}

// due returns what is to be asked about.
func (v *vigil) due() map[*identity.Proof]authn.Credentials {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[*identity.Proof]authn.Credentials{}
	for p, s := range v.proofs {
		if now := v.now(); now.Sub(s.at) >= askedAgain {
			s.at = now
			out[p] = s.credentials
		}
	}
	return out
}

// ask asks about a token, and takes the Proof back if it is not good any more.
func (v *vigil) ask(ctx context.Context, p *identity.Proof, c authn.Credentials) {
	_, err := v.authenticator.Authenticate(ctx, c)
	var refused *authn.Refusal
	if errors.As(err, &refused) && (refused.Reason == authn.ReasonToken || refused.Reason == authn.ReasonExpired) {
		p.TakeBack()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.proofs, p)
	}
}
