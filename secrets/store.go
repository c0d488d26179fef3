package secrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

var (
	errName    = errors.New("the name is not text")
	errTooMany = fmt.Errorf("the namespace's proxies ask for more than %d objects", maxObjects)
	errNames   = fmt.Errorf("the proxy asks for more than %d names; the others are left out", maxNames)
	errDenied  = errors.New("the proxy's service account may not list Secrets in the namespace: want a Role that lets it")
	errUnknown = errors.New("the API server does not say whether the proxy's service account may list Secrets")
)

// maxObjects is how many objects of a namespace are held at once: proxies may name whatever they like.
const maxObjects = 10_000

// maxNames is how many names of one proxy are looked at: all those objects, each by its own name and as roots.
const maxNames = 2 * maxObjects

// Source has objects.
type Source interface {
	// Want says that an object is wanted, or is not any more. The Source then Tells the Store what it knows of each that
	// is wanted, now and whenever that changes. Want neither blocks nor calls the Store.
	Want(o Object, yes bool)
}

// Found is what a Source knows of an object.
type Found struct {
	// Material is what it has; nil if it is not there.
	Material *Material
	// Err is why that is not known.
	Err error
}

// Options are the settings of a Store.
type Options struct {
	// Rights decides who may list Secrets; nil: whoever is of the namespace.
	Rights Rights
	// Now is the clock, Every ticks at intervals.
	Now   func() time.Time
	Every func(time.Duration) <-chan time.Time
	// Trouble is told why a proxy of a namespace does not get what a resource's name asks for; an empty reason takes that
	// back. It must neither block nor call the Store. It may be nil.
	Trouble func(namespace, resource, reason string)
}

// Store has what proxies ask for. All methods may be called by any goroutine; none blocks but Run.
type Store struct {
	// Immutable after AddSource was called for each.
	options Options
	sources []Source

	// asked wakes Run for rights that are to be asked for.
	asked chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	objects map[Object]*object
	held    map[string]int // objects, by namespace
	items   map[itemKey]*item
	rights  map[rightKey]*right
	views   map[*View]struct{}
	refused [NumRefusals]uint64
}

// object is a Secret or a ConfigMap that is wanted.
type object struct {
	name  Object
	told  []*Found // by Source; nil where it has not told yet
	items map[*item]struct{}
}

// item is a resource as the proxies of one namespace get it that may have it.
type item struct {
	asked     Asked
	namespace string
	objects   []*object
	users     map[*View]struct{}

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

// New makes an empty Store.
func New(o Options) *Store {
	if o.Trouble == nil {
		o.Trouble = func(string, string, string) {}
	}
	return &Store{options: o, asked: make(chan struct{}, 1), objects: map[Object]*object{}, held: map[string]int{},
		items: map[itemKey]*item{}, rights: map[rightKey]*right{}, views: map[*View]struct{}{}}
}

// AddSource adds a Source, before anything is asked for, and returns what the Source tells. Of two Sources that have an
// object the one that was added first counts.
func (s *Store) AddSource(source Source) (tell func(Object, Found)) {
	at := len(s.sources)
	s.sources = append(s.sources, source)
	return func(o Object, f Found) { s.told(at, o, f) }
}

// told takes what a Source knows of an object.
func (s *Store) told(source int, name Object, f Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	if o == nil {
		return // nobody wants it any more
	}
	o.told[source] = &f
	for it := range o.items {
		s.renew(it)
	}
}

// state is what is known of the object: what the first Source says that has it, if those before have told.
func (o *object) state() (f Found, known bool) {
	for _, f := range o.told {
		if f == nil {
			return Found{}, false
		}
		if f.Material != nil || f.Err != nil {
			return *f, true
		}
	}
	return Found{}, true
}

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
	it.known, it.made, it.err = true, next, err
	s.complain(it)
	if same {
		return
	}
	for v := range it.users {
		v.changed()
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

// use has a View use the item that it asks for. The caller holds mu.
func (s *Store) use(v *View, a Asked) *item {
	key := itemKey{v.who.Namespace, a.Resource}
	it := s.items[key]
	if it == nil {
		it = &item{asked: a, namespace: v.who.Namespace, users: map[*View]struct{}{}}
		s.items[key] = it
		if s.held[it.namespace]+len(a.Objects) <= maxObjects {
			for _, name := range a.Objects {
				it.objects = append(it.objects, s.want(name, it))
			}
		}
		s.renew(it)
	}
	it.users[v] = struct{}{}
	return it
}

// leave takes a View from the users of an item, which is forgotten with the last. The caller holds mu.
func (s *Store) leave(v *View, it *item) {
	if delete(it.users, v); len(it.users) > 0 {
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

// View is what one identity gets of some names.
type View struct {
	// Immutable.
	store   *Store
	who     identity.Identity
	changed func()
	asks    []ask
	beyond  string // the first name that is not looked at; empty for none

	// Guarded by the Store's mu.
	right  *right // nil if none of the names needs one
	closed bool
}

// ask is one name.
type ask struct {
	Asked
	err  error // why nobody gets it
	item *item // nil while it is not known that the identity may have it
	// denied is whether the identity was told that it may not have it. Guarded by the Store's mu.
	denied bool
}

// Open asks for resources, by name, for an identity. changed is called whenever Resources may return something else; it
// must neither block nor call the Store.
func (s *Store) Open(who identity.Identity, names []string, changed func()) *View {
	v := &View{store: s, who: who, changed: changed, asks: make([]ask, min(len(names), maxNames))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views[v] = struct{}{}
	if more := len(names) - len(v.asks); more > 0 {
		v.beyond = names[maxNames]
		s.refused[TooMany] += uint64(more)
		s.options.Trouble(who.Namespace, v.beyond, errNames.Error())
	}
	for i := range v.asks {
		a := &v.asks[i]
		if a.Asked, a.err = Parse(names[i], who.Namespace); a.err != nil {
			s.refused[refusal(a.err)]++
			s.options.Trouble(who.Namespace, names[i], a.err.Error())
		} else if a.Reviewed && v.right == nil {
			v.right = s.claim(v)
		}
	}
	v.fill()
	return v
}

// fill finds what the View may have. The caller holds the Store's mu.
func (v *View) fill() {
	for i := range v.asks {
		a := &v.asks[i]
		if a.err == nil && a.item == nil && (!a.Reviewed || v.right.state == allowed) {
			a.item, a.denied = v.store.use(v, a.Asked), false
		}
	}
}

// Resources returns what there is of the names for the identity. It reports false while that is not known.
func (v *View) Resources() (chunked.Map[*encodecache.Entry], bool) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []chunked.Item[*encodecache.Entry]
	for i := range v.asks {
		a := &v.asks[i]
		switch {
		case a.err != nil:
			continue
		case a.Reviewed && !v.right.decided(s.options.Now()):
			s.askFor(v.right)
			return chunked.Map[*encodecache.Entry]{}, false
		case a.Reviewed && v.right.state != allowed:
			continue
		case !a.item.known:
			return chunked.Map[*encodecache.Entry]{}, false
		case a.item.entry != nil:
			found = append(found, chunked.Item[*encodecache.Entry]{Key: a.Resource, Value: a.item.entry})
		}
	}
	slices.SortFunc(found, func(a, b chunked.Item[*encodecache.Entry]) int { return cmp.Compare(a.Key, b.Key) })
	return chunked.New(found), true
}

// Close says that nobody asks any more. What only this View had is forgotten.
func (v *View) Close() {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.closed {
		return
	}
	v.closed = true
	delete(s.views, v)
	if v.beyond != "" {
		s.options.Trouble(v.who.Namespace, v.beyond, "")
	}
	for i := range v.asks {
		if a := &v.asks[i]; a.item != nil {
			s.leave(v, a.item)
			a.item = nil
		} else {
			s.options.Trouble(v.who.Namespace, a.Resource, "")
		}
	}
	if v.right != nil {
		s.waive(v)
	}
}

// Stats are counts of a Store.
type Stats struct {
	// Objects are those that are held, Views those who ask.
	Objects, Views int
	// Refused counts what was asked for and not had, by reason.
	Refused [NumRefusals]uint64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Objects: len(s.objects), Views: len(s.views), Refused: s.refused}
}

// reviewEvery is how often rights are asked for again that have run out, and certificates looked at that may have
// expired.
const reviewEvery = 20 * time.Second

// Run asks for rights, and for them again when they run out, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	tick := s.options.Every(reviewEvery)
	room := make(chan struct{}, maxAsking)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			s.review()
		case <-s.asked:
		}
		for _, r := range s.due() {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			all.Go(func() {
				defer func() { <-room }()
				s.ask(ctx, r)
			})
		}
	}
}

// review looks for what has expired, and asks for rights again that have run out.
func (s *Store) review() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	for _, it := range s.items {
		if it.known {
			s.complain(it)
		}
	}
	for _, r := range s.rights {
		if !r.decided(now) {
			s.askFor(r)
		}
	}
}
