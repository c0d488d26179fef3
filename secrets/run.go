package secrets

import "github.com/pilotd/pilotd/encodecache"

// run is a chunk of names that Views of one account have in common.
type run struct {
	// Immutable after newRun.
	account  *account
	names    *chunk
	reviewed bool // some of them need the account's right

	// Guarded by the Store's mu.
	asks    []ask // by name
	views   map[*View]struct{}
	unknown int // how many of them nobody has said anything about yet
}

// ask is one name.
type ask struct {
	Asked
	err    error // why nobody gets it
	item   *item // nil while the account may not have it
	denied bool  // it was said that the account may not have it
}

// entry returns what there is of the name for the account; nil for nothing.
func (a *ask) entry() *encodecache.Entry {
	if a.item == nil {
		return nil
	}
	return a.item.entry
}

// hold has a View use a chunk of names. It returns the run, and what that cost: one for each name that was not looked
// at yet, and a little for the others. The caller holds mu.
func (s *Store) hold(v *View, c *chunk, known *cursor) (r *run, cost int) {
	if r = v.account.runs[c]; r == nil {
		r, cost = s.newRun(v.account, c, known)
	}
	r.views[v] = struct{}{}
	v.runs = append(v.runs, r)
	v.unknown += r.unknown
	v.reviewed = v.reviewed || r.reviewed
	return r, cost + 1
}

// copies is how many names that are known already cost as much as one that is looked at.
const copies = 16

// newRun makes the run of a chunk. The caller holds mu.
func (s *Store) newRun(a *account, c *chunk, known *cursor) (r *run, cost int) {
	r = &run{account: a, names: c, asks: make([]ask, c.Len()), views: map[*View]struct{}{}}
	fresh := 0
	for i, name := range c.Keys() {
		if same := known.find(name); same != nil {
			r.asks[i] = *same
			r.share(&r.asks[i])
		} else {
			fresh++
			r.asks[i].Asked, r.asks[i].err = Parse(name, a.who.Namespace)
			s.answer(r, &r.asks[i])
		}
		r.reviewed = r.reviewed || r.asks[i].Reviewed
	}
	if r.reviewed && !a.decided(s.options.Now()) {
		s.askFor(a)
	}
	a.runs[c] = r
	s.looked += uint64(fresh)
	return r, fresh + (c.Len()-fresh)/copies
}

// answer gives a name that was looked at to a run, if the account may have it. The caller holds mu.
func (s *Store) answer(r *run, a *ask) {
	switch {
	case !a.Reviewed || r.account.state == allowed:
		if a.item = s.use(r, a); !a.item.known {
			r.unknown++
		}
	case r.account.state != unknown:
		s.deny(r, a)
	}
}

// share gives a run a name that another run of its account has, too. The caller holds the Store's mu.
func (r *run) share(a *ask) {
	switch {
	case a.item != nil:
		if a.item.users[r] = struct{}{}; !a.item.known {
			r.unknown++
		}
	case a.denied:
		r.account.blamed[a.Resource]++
	}
}

// leaveRun takes a View from those that use a run, which is forgotten with the last. The caller holds mu.
func (s *Store) leaveRun(v *View, r *run) {
	if delete(r.views, v); len(r.views) > 0 {
		return
	}
	delete(r.account.runs, r.names)
	for i := range r.asks {
		switch a := &r.asks[i]; {
		case a.item != nil:
			s.leave(r, a.item)
		case a.denied:
			s.pardon(r.account, a.Resource)
		}
	}
}

// entitle gives a name that needs the account's right to the Views of a run, or takes it from them. The caller holds
// mu.
func (s *Store) entitle(r *run, a *ask) {
	switch {
	case r.account.state != allowed:
		if a.item != nil {
			if !a.item.known {
				r.learn(-1)
			}
			s.leave(r, a.item)
			a.item = nil
		}
		s.deny(r, a)
	case a.item == nil:
		if a.denied {
			a.denied = false
			s.pardon(r.account, a.Resource)
		}
		if a.item = s.use(r, a); !a.item.known {
			r.learn(1)
		}
	}
	r.put(a.Resource, a.entry())
}

// deny says that the account may not have a name. The caller holds mu.
func (s *Store) deny(r *run, a *ask) {
	reason := errDenied
	if r.account.state == failed {
		reason = errUnknown
	}
	if !a.denied {
		a.denied = true
		s.refused[NoRight]++
		r.account.blamed[a.Resource]++
	}
	s.options.Trouble(r.account.who.Namespace, a.Resource, reason.Error())
}

// pardon takes back once what was said of a name of the account. The caller holds mu.
func (s *Store) pardon(a *account, name string) {
	if a.blamed[name]--; a.blamed[name] == 0 {
		delete(a.blamed, name)
		s.options.Trouble(a.who.Namespace, name, "")
	}
}

// learn counts names that are not known yet, or by a negative number names that are known now.
func (r *run) learn(unknown int) {
	r.unknown += unknown
	for v := range r.views {
		v.unknown += unknown
	}
}

// put tells the Views of a run what they have under a name.
func (r *run) put(name string, e *encodecache.Entry) {
	for v := range r.views {
		v.put(name, e)
	}
}

// cursor finds names of a View, in the order of names.
type cursor struct {
	runs []*run
	at   int // in the first of runs
}

// find returns what the View has of a name, which comes after those that were looked for before; nil if it does not ask
// for it. The caller holds the Store's mu.
func (c *cursor) find(name string) *ask {
	for len(c.runs) > 0 {
		names := c.runs[0].names.Keys()
		if names[len(names)-1] < name {
			c.runs, c.at = c.runs[1:], 0
			continue
		}
		for names[c.at] < name {
			c.at++
		}
		if names[c.at] == name {
			return &c.runs[0].asks[c.at]
		}
		return nil
	}
	return nil
}
