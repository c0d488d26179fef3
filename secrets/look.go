package secrets

import (
	"context"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/identity/quota"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

type chunk = chunked.Chunk[struct{}]

type edit = chunked.Edit[*encodecache.Entry]

// maxLooked is how many names of one identity are looked at in a second, and ten times as many at once. Each costs some
// microseconds.
const maxLooked = maxNames

// wake has look see to an account's Views. The caller holds mu.
func (s *Store) wake(a *account) {
	if a.waits == nil {
		a.waits = s.waiting.PushBack(a)
	}
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// enqueue has look see to a View whose names it has looked at. The caller holds mu.
func (s *Store) enqueue(v *View) {
	if !v.queued && !v.busy {
		v.queued = true
		v.account.others = append(v.account.others, v)
		s.wake(v.account)
	}
}

// look does for Views what takes long, until ctx ends: one View at a time, of each account in turn.
func (s *Store) look(ctx context.Context) {
	for ctx.Err() == nil {
		v, wait := s.next()
		if v != nil {
			s.see(v)
			continue
		}
		var later <-chan time.Time
		if wait > 0 {
			later = s.options.Every(wait)
		}
		select {
		case <-ctx.Done():
		case <-s.work:
		case <-later:
		}
	}
}

// next takes the View that is to be seen to; nil if there is none, and in which time there will be one if some have to
// wait because their identities have had too many names looked at.
func (s *Store) next() (next *View, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := s.waiting.Len(); n > 0; n-- {
		at := s.waiting.Front()
		a := at.Value.(*account)
		v, late := a.next(s.rate)
		if s.waiting.MoveToBack(at); a.openings.Len()+len(a.others) == 0 {
			s.waiting.Remove(at)
			a.waits = nil
		}
		if v != nil {
			v.busy = true
			return v, 0
		}
		if late > 0 && (wait == 0 || late < wait) {
			wait = max(late, leastWait)
		}
	}
	return nil, wait
}

// leastWait is how long look waits at least for an account that has to wait.
const leastWait = time.Millisecond

// next takes the account's View that is to be seen to first. Names are looked at before others are forgotten, for both
// may be the same; and while the account may have none looked at, the others are seen to. The caller holds mu.
func (a *account) next(rate *quota.Rate) (next *View, wait time.Duration) {
	if first := a.openings.Front(); first != nil {
		if wait = rate.Wait(a.caller()); wait == 0 {
			v := a.openings.Remove(first).(*View)
			v.place = nil
			return v, 0
		}
	}
	if len(a.others) == 0 {
		return nil, wait
	}
	v := a.others[0]
	a.others[0], a.others = nil, a.others[1:] // whoever knows a View knows keys
	v.queued = false
	return v, 0
}

// see does what is to be done for a View. It holds the Store's mu for no longer than a chunk of names takes.
func (s *Store) see(v *View) {
	s.mu.Lock()
	ready, closed := v.ready, v.closed
	s.mu.Unlock()
	switch {
	case closed:
		s.release(v)
		return
	case ready:
		s.refresh(v)
	default:
		s.lookAt(v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.busy = false
	if v.closed {
		s.enqueue(v)
	}
	v.tell()
}

// lookAt looks at the names of a View.
func (s *Store) lookAt(v *View) {
	s.mu.Lock()
	base, known := v.base, &cursor{}
	if base != nil {
		known.runs = base.runs
		if !base.ready {
			base = nil
		}
	}
	s.mu.Unlock()
	var found []edit
	names, cost := 0, 0
	for c := range v.names.Chunks() {
		if names+c.Len() > maxNames {
			s.leaveOut(v, c.Keys()[0], v.names.Len()-names)
			break
		}
		names += c.Len()
		s.mu.Lock()
		r, n := s.hold(v, c, known)
		if _, had := r.views[base]; !had {
			found = r.found(found)
		}
		s.mu.Unlock()
		cost += n
	}
	s.rate.Take(v.account.caller(), cost)
	section := base.less(v).Apply(found)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.section, v.ready, v.base = section, true, nil
}

// found adds what there is of the names of a run. The caller holds the Store's mu.
func (r *run) found(to []edit) []edit {
	for i := range r.asks {
		if e := r.asks[i].entry(); e != nil {
			to = append(to, edit{Key: r.asks[i].Resource, Value: e})
		}
	}
	return to
}

// less returns what a View has, without the names of runs that another one has not; nothing for nil.
func (v *View) less(other *View) chunked.Map[*encodecache.Entry] {
	if v == nil {
		return chunked.Map[*encodecache.Entry]{}
	}
	s := v.store
	s.mu.Lock()
	section, edits := v.section, v.edits.List()
	for _, r := range v.runs {
		if _, both := r.views[other]; !both {
			for _, name := range r.names.Keys() {
				edits = append(edits, edit{Key: name, Delete: true})
			}
		}
	}
	s.mu.Unlock()
	return section.Apply(edits)
}

// leaveOut says that the last names of a View are not looked at.
func (s *Store) leaveOut(v *View, first string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.beyond = first
	v.account.blamed[first]++
	s.refused[TooMany] += uint64(n)
	s.options.Trouble(v.who.Namespace, first, errNames.Error())
}

// refresh takes what is different since the View's section was made.
func (s *Store) refresh(v *View) {
	s.mu.Lock()
	section, edits := v.section, v.edits
	v.edits = nil
	s.mu.Unlock()
	section = edits.Apply(section)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.section = section
}

// release forgets a View that is closed, and what only it had.
func (s *Store) release(v *View) {
	for _, r := range v.runs {
		s.mu.Lock()
		s.leaveRun(v, r)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.beyond != "" {
		s.pardon(v.account, v.beyond)
	}
	v.runs, v.ready = nil, false
	v.section, v.edits = chunked.Map[*encodecache.Entry]{}, nil
	s.forget(v)
}
