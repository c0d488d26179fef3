package shard

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// Secrets has the resources of the type that is made for each client by who it has proven to be.
type Secrets interface {
	// Open asks for resources, by name, for an identity. from is what the client asked for before, which may be closed as
	// soon as Open returns; nil for nothing. changed is called, on any goroutine, whenever the View may have others, maybe
	// before Open returns. Open does not block, and costs the same however many names there are.
	Open(who identity.Identity, names chunked.Map[struct{}], from SecretView, changed func()) SecretView
}

// SecretView is what one identity has of the resources that it asks for. Its methods do not block.
type SecretView interface {
	// Resources returns what there is of the names for the identity. It reports false while that is not known.
	Resources() (chunked.Map[*encodecache.Entry], bool)
	// Close says that nobody asks any more.
	Close()
}

// audience is the clients of one worker that have proven to be the same identity and ask for the same secrets. They
// share what they are sent, and it is shared with nobody else: it is gone when the last of them has left. Owned by the
// worker goroutine.
type audience struct {
	key     audienceKey
	view    SecretView
	has     *ads.Resources // nil while it is not known
	members map[*client]struct{}
}

type audienceKey struct {
	who   identity.Identity
	names *ads.Names
}

// personal is what one client should have: what its class has, and secrets. It implements ads.Desired.
type personal struct {
	*desired
	worker *worker
	client *client
}

// Resources implements ads.Desired.
func (p *personal) Resources(typ xdstype.Type, sub ads.Subscription) *ads.Resources {
	if typ != p.worker.shards.opts.Types.FromIdentity() {
		return p.desired.Resources(typ, sub)
	}
	return p.worker.secretsFor(p.client, sub)
}

// desiredFor returns what a client of a class group should have.
func (w *worker) desiredFor(m *client) ads.Desired {
	if m.personal {
		return &personal{m.group.desired, w, m}
	}
	return m.group.desired
}

// personalize notes that a client asks for secrets. One that has not proven who it is gets none.
func (w *worker) personalize(m *client, r *ads.Request) {
	typ := w.shards.opts.Types.FromIdentity()
	if m.personal || typ == xdstype.None || r.TypeURL != w.shards.opts.Types.Row(typ).URL {
		return
	}
	if w.shards.opts.Secrets == nil || !m.proxy.Proven.Proven() {
		w.shards.opts.Metrics.Withheld(Unproven)
		return
	}
	m.personal = true
	m.proxy.Proven.Proof.Need()
	w.carryOut(m, m.session.SetDesired(w.now(), w.differ, w.desiredFor(m)), m.since)
}

// secretsFor returns what a client may have of the secrets that it asks for; nil while that is not known. When the
// proof of who it is has ended it keeps those that it has, and gets no others.
func (w *worker) secretsFor(m *client, sub ads.Subscription) *ads.Resources {
	switch {
	case m.lapsed != nil:
		return m.lapsed
	case !m.proxy.Proven.Holds(w.now()):
		w.shards.opts.Metrics.Withheld(Lapsed)
		w.leaveAudience(m)
		m.lapsed = &ads.Resources{Final: true}
		return m.lapsed
	case sub.Names == nil: // nobody may ask for all there are
		w.leaveAudience(m)
		return &ads.Resources{}
	}
	key := audienceKey{m.proxy.Proven.Identity, sub.Names}
	if m.audience == nil || m.audience.key != key {
		next := w.audiences[key]
		if next == nil {
			next = w.newAudience(key, m.audience)
		}
		next.members[m] = struct{}{}
		w.leaveAudience(m) // after it has joined the next, for what both have must not be forgotten meanwhile
		m.audience = next
	}
	return m.audience.has
}

// newAudience asks for secrets, for a client of another audience or of none.
func (w *worker) newAudience(key audienceKey, before *audience) *audience {
	a := &audience{key: key, members: map[*client]struct{}{}}
	var from SecretView
	if before != nil {
		from = before.view
	}
	a.view = w.shards.opts.Secrets.Open(key.who, key.names.Map(), from, func() { w.slots.postAudience(a) })
	a.look()
	w.audiences[key] = a
	return a
}

// look takes what there is now.
func (a *audience) look() {
	section, known := a.view.Resources()
	switch {
	case !known:
		a.has = nil
	case a.has == nil || !a.has.Section.Same(section):
		a.has = &ads.Resources{Section: section}
	}
}

// leaveAudience takes a client out of its audience, which ends with the last.
func (w *worker) leaveAudience(m *client) {
	a := m.audience
	if a == nil {
		return
	}
	m.audience = nil
	if delete(a.members, m); len(a.members) == 0 {
		delete(w.audiences, a.key)
		a.view.Close()
	}
}

// handleAudiences tells clients of secrets that have changed.
func (w *worker) handleAudiences(turned map[*audience]struct{}) {
	typ := w.shards.opts.Types.FromIdentity()
	for a := range turned {
		if w.audiences[a.key] != a {
			continue
		}
		before := a.has
		if a.look(); a.has == nil || a.has == before {
			continue
		}
		for m := range a.members {
			w.guard(m, "changed secrets", func() { w.carryOut(m, m.session.Renew(w.now(), w.differ, typ), w.now()) })
		}
	}
}

// Withheld says why a client is not sent secrets whoever they are for.
type Withheld uint8

const (
	// Unproven clients have not proven who they are, or there is nobody who knows secrets.
	Unproven Withheld = iota
	// Lapsed is the proof of clients whose certificate or token has expired, or whose token was revoked.
	Lapsed

	// NumWithheld is how many reasons there are.
	NumWithheld = iota
)

func (r Withheld) String() string { return [NumWithheld]string{"unproven", "lapsed"}[r] }
