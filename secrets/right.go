package secrets

import (
	"container/list"
	"context"
	"time"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// Rights decides who may list Secrets.
type Rights interface {
	// MayListSecrets reports whether an identity may list the Secrets of its namespace. It may block.
	MayListSecrets(ctx context.Context, who identity.Identity) (bool, error)
}

const (
	// allowedFor and deniedFor are how long an answer holds.
	allowedFor, deniedFor = 5 * time.Minute, time.Minute
	// failedFor is how long it is waited after a question that was not answered.
	failedFor = 5 * time.Second
	// askingFor is how long a question may take: a listener waits for it, and Envoy gives up after 15 s.
	askingFor = 5 * time.Second
	// maxAsking is how many questions are asked at once.
	maxAsking = 16
)

// verdict is what is known of a right.
type verdict uint8

const (
	unknown verdict = iota
	allowed
	denied
	// failed: nobody could say, and it was never known.
	failed
)

// accountKey is who asks: names of trust domains do not matter to the cluster.
type accountKey struct{ namespace, account string }

// account is a service account that asks for secrets, and whether it may list the Secrets of its namespace. Guarded by
// the Store's mu.
type account struct {
	accountKey
	who identity.Identity // immutable

	state  verdict
	until  time.Time // how long that holds; zero for ever
	asking bool      // it is being asked, or will be
	taken  bool      // it is being asked
	again  time.Time // until then it is not asked for again, for nobody could say

	views    map[*View]struct{}
	runs     map[*chunk]*run
	blamed   map[string]int // names of which something was said but by their items, and how often
	openings list.List      // of *View: those whose names are to be looked at
	others   []*View        // those that are to be seen to for another reason
	waits    *list.Element  // in Store.waiting; nil if none is to be seen to
}

// caller is who is charged for the account's names.
func (a *account) caller() quota.Caller { return quota.Of(a.who, nil) }

// decided reports whether what is known of the right holds.
func (a *account) decided(now time.Time) bool {
	return a.state != unknown && (a.until.IsZero() || now.Before(a.until))
}

// idle reports whether nobody asks by the account.
func (a *account) idle() bool { return len(a.views)+len(a.runs) == 0 && !a.asking }

// asked reports whether somebody needs the right, or did before.
func (a *account) asked() bool {
	if a.state != unknown {
		return true
	}
	for v := range a.views {
		if v.reviewed {
			return true
		}
	}
	return false
}

// accountOf returns the account of an identity. The caller holds mu.
func (s *Store) accountOf(who identity.Identity) *account {
	key := accountKey{who.Namespace, who.ServiceAccount}
	a := s.accounts[key]
	if a == nil {
		a = &account{accountKey: key, who: who, views: map[*View]struct{}{}, runs: map[*chunk]*run{},
			blamed: map[string]int{}}
		s.accounts[key] = a
		if s.options.Rights == nil {
			a.state = allowed // it is of the namespace
		}
	}
	return a
}

// forget takes a View from those of its account. What is known of the account's right is kept while it holds, for those
// that come again. The caller holds mu.
func (s *Store) forget(v *View) {
	a := v.account
	delete(a.views, v)
	s.views--
	if a.idle() && (len(s.accounts) > maxRights || !a.decided(s.options.Now()) || a.until.IsZero()) {
		delete(s.accounts, a.accountKey)
	}
}

// maxRights is how many answers are kept of which some may be nobody's any more.
const maxRights = 1000

// askFor has Run ask for a right. The caller holds mu.
func (s *Store) askFor(a *account) {
	if a.asking || s.options.Rights == nil || s.options.Now().Before(a.again) {
		return
	}
	a.asking = true
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// due returns the accounts whose rights are to be asked for.
func (s *Store) due() (out []*account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if a.asking && !a.taken {
			a.taken = true
			out = append(out, a)
		}
	}
	return out
}

// ask asks for a right, and tells those that need it. What was known before holds no longer than it did: while nobody
// can say, those that had the right are told nothing, and nobody else gets anything by it.
func (s *Store) ask(ctx context.Context, a *account) {
	ctx, cancel := context.WithTimeout(ctx, askingFor)
	defer cancel()
	may, err := s.options.Rights.MayListSecrets(ctx, a.who)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.asking, a.taken = false, false
	now, was, held := s.options.Now(), a.state, a.decided(s.options.Now())
	switch {
	case err != nil && a.state != allowed:
		a.state, a.until = failed, now.Add(failedFor)
	case err != nil: // the next review asks again
		a.again = now.Add(failedFor)
		if held {
			return
		}
	case may:
		a.state, a.until = allowed, now.Add(allowedFor)
	default:
		a.state, a.until = denied, now.Add(deniedFor)
	}
	if a.state != was {
		s.judge(a)
	} else if held {
		return
	}
	for v := range a.views {
		v.tell()
	}
}

// judge gives to the Views of an account what it may have, or takes it from them. The caller holds mu.
func (s *Store) judge(a *account) {
	for _, r := range a.runs {
		for i := range r.asks {
			if r.asks[i].Reviewed {
				s.entitle(r, &r.asks[i])
			}
		}
	}
}
