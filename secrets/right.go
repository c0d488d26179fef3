package secrets

import (
	"context"
	"time"

	"github.com/pilotd/pilotd/identity"
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

// rightKey is who asks: names of trust domains do not matter to the cluster.
type rightKey struct{ namespace, account string }

// right is whether a service account may list the Secrets of its namespace. Guarded by the Store's mu.
type right struct {
	who    identity.Identity
	state  verdict
	until  time.Time // how long that holds; zero for ever
	asking bool      // it is being asked, or will be
	taken  bool      // it is being asked
	again  time.Time // until then it is not asked for again, for nobody could say
	views  map[*View]struct{}
}

// decided reports whether what is known of the right holds.
func (r *right) decided(now time.Time) bool {
	return r.state != unknown && (r.until.IsZero() || now.Before(r.until))
}

// claim has a View need the right of its identity. The caller holds mu.
func (s *Store) claim(v *View) *right {
	key := rightKey{v.who.Namespace, v.who.ServiceAccount}
	r := s.rights[key]
	if r == nil {
		r = &right{who: v.who, views: map[*View]struct{}{}}
		s.rights[key] = r
		if s.options.Rights == nil {
			r.state = allowed // it is of the namespace
		} else {
			s.askFor(r)
		}
	}
	r.views[v] = struct{}{}
	return r
}

// waive takes a View from those that need its right. What is known of it is kept while it holds, for those that come
// again. The caller holds mu.
func (s *Store) waive(v *View) {
	delete(v.right.views, v)
	now := s.options.Now()
	for key, r := range s.rights {
		if len(r.views) == 0 && !r.asking && (len(s.rights) > maxRights || !r.decided(now) || r.until.IsZero()) {
			delete(s.rights, key)
		}
	}
}

// maxRights is how many answers are kept of which some may be nobody's any more.
const maxRights = 1000

// askFor has Run ask for a right. The caller holds mu.
func (s *Store) askFor(r *right) {
	if r.asking || s.options.Rights == nil || s.options.Now().Before(r.again) {
		return
	}
	r.asking = true
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// due returns the rights that are to be asked for.
func (s *Store) due() (out []*right) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rights {
		if r.asking && !r.taken {
			r.taken = true
			out = append(out, r)
		}
	}
	return out
}

// ask asks for a right, and tells those that need it. What was known before holds no longer than it did: while nobody
// can say, those that had the right are told nothing, and nobody else gets anything by it.
func (s *Store) ask(ctx context.Context, r *right) {
	ctx, cancel := context.WithTimeout(ctx, askingFor)
	defer cancel()
	may, err := s.options.Rights.MayListSecrets(ctx, r.who)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.asking, r.taken = false, false
	now := s.options.Now()
	switch {
	case err != nil && r.state != allowed:
		r.state, r.until = failed, now.Add(failedFor)
	case err != nil: // the next review asks again
		if r.again = now.Add(failedFor); !r.decided(now) {
			for v := range r.views {
				v.changed() // from now on nobody gets anything by it
			}
		}
		return
	case may:
		r.state, r.until = allowed, now.Add(allowedFor)
	default:
		r.state, r.until = denied, now.Add(deniedFor)
	}
	for v := range r.views {
		v.judge()
	}
}

// judge takes what is known of the View's right. The caller holds the Store's mu.
func (v *View) judge() {
	s := v.store
	v.fill()
	for i := range v.asks {
		if a := &v.asks[i]; a.err == nil && a.Reviewed && v.right.state != allowed {
			if a.item != nil {
				s.leave(v, a.item)
				a.item = nil
			}
			reason := errDenied
			if v.right.state == failed {
				reason = errUnknown
			}
			if !a.denied {
				a.denied = true
				s.refused[NoRight]++
			}
			s.options.Trouble(v.who.Namespace, a.Resource, reason.Error())
		}
	}
	v.changed()
}
