package secrets

import (
	"fmt"
	"time"

	"github.com/pilotd/pilotd/encodecache"
)

// item is a resource as the proxies of one namespace get it that may have it.
type item struct {
	asked     Asked
	namespace string
	objects   []*object
	users     map[*run]struct{}

	known bool
	made
	err error // why there is no entry
}

// made is what is made of an object for a name.
type made struct {
	entry *encodecache.Entry // nil if there is none
	until time.Time          // when what it has expires
	lists time.Time          // when its lists of revoked certificates do; zero for never
}

type itemKey struct{ namespace, resource string }

// renew makes an item anew, and tells its users if it is another one. The caller holds mu.
func (s *Store) renew(it *item) {
	next, err, known := it.make()
	if !known {
		return // what was known holds on
	}
	if it.known && err == nil && it.entry != nil && it.entry.Sum() == next.entry.Sum() {
		next.entry = it.entry
	}
	same := it.known && next.entry == it.entry
	if it.err == nil && err != nil {
		s.refused[refusal(err)]++
	}
	first := !it.known
	it.known, it.made, it.err = true, next, err
	s.complain(it)
	for r := range it.users {
		if first {
			r.learn(-1)
		}
		if !same {
			r.put(it.asked.Resource, it.entry)
		}
		for v := range r.views {
			if first || !same {
				v.tell()
			}
		}
	}
}

// make looks for the item in its objects.
func (it *item) make() (out made, err error, known bool) {
	if len(it.objects) == 0 {
		return out, errTooMany, true
	}
	for _, o := range it.objects {
		f, told := o.state()
		switch {
		case !told:
			return out, nil, false
		case f.Err != nil:
			return out, fmt.Errorf("%s: %w", o.name, f.Err), true
		case f.Material == nil:
			continue
		}
		if out, err = it.asked.entry(f.Material); err != nil {
			return made{}, fmt.Errorf("%s: %w", o.name, err), true
		}
		return out, nil, true
	}
	return out, &refusedError{Missing, it.objects[len(it.objects)-1].name.String() + " is not there"}, true
}

// complain tells what is wrong with an item, or that nothing is. The caller holds mu.
func (s *Store) complain(it *item) {
	reason := ""
	switch now := s.options.Now(); {
	case it.err != nil:
		reason = it.err.Error()
	case it.entry != nil && now.After(it.until):
		reason = fmt.Sprintf("%s: what it has expired on %s; it is sent all the same",
			it.objects[len(it.objects)-1].name, it.until.UTC().Format(time.RFC3339))
	case it.entry != nil && !it.lists.IsZero() && now.After(it.lists):
		reason = fmt.Sprintf("%s: its list of revoked certificates expired on %s, so that no certificate is accepted",
			it.objects[len(it.objects)-1].name, it.lists.UTC().Format(time.RFC3339))
	}
	s.options.Trouble(it.namespace, it.asked.Resource, reason)
}

// use has a run use the item that one of its names asks for. The caller holds mu.
func (s *Store) use(r *run, a *ask) *item {
	key := itemKey{r.account.who.Namespace, a.Resource}
	it := s.items[key]
	if it == nil {
		it = &item{asked: a.Asked, namespace: key.namespace, users: map[*run]struct{}{}}
		s.items[key] = it
		if a.err != nil {
			it.known, it.err = true, a.err
			s.refused[refusal(a.err)]++
			s.complain(it)
		} else {
			if s.held[it.namespace]+len(a.Objects) <= maxObjects {
				for _, name := range a.Objects {
					it.objects = append(it.objects, s.want(name, it))
				}
			}
			s.renew(it)
		}
	}
	it.users[r] = struct{}{}
	return it
}

// leave takes a run from the users of an item, which is forgotten with the last. The caller holds mu.
func (s *Store) leave(r *run, it *item) {
	if delete(it.users, r); len(it.users) > 0 {
		return
	}
	delete(s.items, itemKey{it.namespace, it.asked.Resource})
	s.options.Trouble(it.namespace, it.asked.Resource, "")
	for _, o := range it.objects {
		if delete(o.items, it); len(o.items) > 0 {
			continue
		}
		delete(s.objects, o.name)
		if s.held[o.name.Namespace]--; s.held[o.name.Namespace] == 0 {
			delete(s.held, o.name.Namespace)
		}
		for _, source := range s.sources {
			source.Want(o.name, false)
		}
	}
}

// want has the Sources look for an object. The caller holds mu.
func (s *Store) want(name Object, it *item) *object {
	o := s.objects[name]
	if o == nil {
		o = &object{name: name, told: make([]*Found, len(s.sources)), items: map[*item]struct{}{}}
		s.objects[name] = o
		s.held[name.Namespace]++
		for _, source := range s.sources {
			source.Want(name, true)
		}
	}
	o.items[it] = struct{}{}
	return o
}
