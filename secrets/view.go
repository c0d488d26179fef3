package secrets

import (
	"container/list"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Names is a set of names. Sets that have much in common share chunks of it, which are then looked at once.
type Names = chunked.Map[struct{}]

// View is what one identity gets of some names.
type View struct {
	// Immutable after Open.
	store   *Store
	who     identity.Identity
	changed func()
	names   Names
	account *account

	// Owned by the goroutine of Store.look.
	beyond string // the first name that is not looked at; empty for none

	// Guarded by the Store's mu.
	base     *View         // whose names are much the same; nil for nobody, and when the names have been looked at
	place    *list.Element // in the account's line of Views whose names are to be looked at; nil when not there
	queued   bool          // it is among the Views of the account with other work
	busy     bool          // Store.look works on it
	ready    bool          // its names have been looked at
	closed   bool
	runs     []*run // its names, in order
	reviewed bool   // some of them need the account's right
	unknown  int    // how many of them nobody has said anything about yet
	section  chunked.Map[*encodecache.Entry]
	edits    chunked.Edits[*encodecache.Entry] // what is different since section was made
}

// maxEdits is how many changes of a View are taken where somebody waits for them. More are left to Store.look.
const maxEdits = 256

// Open asks for resources, by name, for an identity. from is a View of the same client that is to be closed, whose
// names are much the same, or nil: with it Open costs what differs. changed is called whenever Resources may return
// something else; it must neither block nor call the Store.
//
// The names are looked at by Run, in turns with those of other identities, and no more of one identity in a second
// than maxLooked. Until then nothing is known of them.
func (s *Store) Open(who identity.Identity, names Names, from *View, changed func()) *View {
	v := &View{store: s, who: who, changed: changed, names: names}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accountOf(who)
	v.account = a
	a.views[v] = struct{}{}
	s.views++
	switch {
	case from == nil || from.account != a:
		v.place = a.openings.PushBack(v)
	case from.place != nil: // nobody has looked at its names: they are not missed when these are looked at first
		v.base = from.base
		v.place = a.openings.InsertBefore(v, from.place)
	default:
		v.base = from
		v.place = a.openings.PushBack(v)
	}
	s.wake(a)
	return v
}

// Resources returns what there is of the names for the identity. It reports false while that is not known.
func (v *View) Resources() (chunked.Map[*encodecache.Entry], bool) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !v.settled() {
		return chunked.Map[*encodecache.Entry]{}, false
	}
	if v.reviewed && !v.account.decided(s.options.Now()) {
		s.askFor(v.account)
		return chunked.Map[*encodecache.Entry]{}, false
	}
	v.section, v.edits = v.edits.Apply(v.section), nil
	return v.section, true
}

// settled reports whether all is known of the names but the account's right. The caller holds the Store's mu.
func (v *View) settled() bool {
	return v.ready && !v.busy && !v.closed && v.unknown == 0 && len(v.edits) <= maxEdits
}

// Close says that nobody asks any more. What only this View had is forgotten soon after.
func (v *View) Close() {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.closed {
		return
	}
	v.closed = true
	if v.place != nil { // nobody has looked at its names
		v.account.openings.Remove(v.place)
		v.place = nil
		s.forget(v)
		return
	}
	s.enqueue(v)
}

// put notes what the View has under a name from now on; nil for nothing. The caller holds the Store's mu, and calls
// tell when it has noted all.
func (v *View) put(name string, e *encodecache.Entry) { v.edits.Put(name, e) }

// tell says that Resources may return something else. The caller holds the Store's mu.
func (v *View) tell() {
	switch {
	case v.closed || v.busy:
	case len(v.edits) > maxEdits:
		v.store.enqueue(v)
	case v.settled():
		v.changed()
	}
}
