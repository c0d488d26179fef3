package secrets

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pilotd/pilotd/identity/quota"
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

	// asked wakes Run for rights that are to be asked for, work wakes look for Views.
	asked, work chan struct{}
	rate        *quota.Rate // of names that are looked at, by identity

	mu sync.Mutex
	// Guarded by mu.
	objects  map[Object]*object
	held     map[string]int // objects, by namespace
	items    map[itemKey]*item
	accounts map[accountKey]*account
	waiting  list.List // of *account: those whose Views are to be seen to
	views    int
	looked   uint64 // names
	refused  [NumRefusals]uint64
}

// object is a Secret or a ConfigMap that is wanted.
type object struct {
	name  Object
	told  []*Found // by Source; nil where it has not told yet
	items map[*item]struct{}
}

// New makes an empty Store.
func New(o Options) *Store {
	if o.Trouble == nil {
		o.Trouble = func(string, string, string) {}
	}
	return &Store{options: o, asked: make(chan struct{}, 1), work: make(chan struct{}, 1),
		rate: quota.NewRate(maxLooked, o.Now), objects: map[Object]*object{}, held: map[string]int{},
		items: map[itemKey]*item{}, accounts: map[accountKey]*account{}}
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

// Stats are counts of a Store.
type Stats struct {
	// Objects are those that are held, Views those who ask.
	Objects, Views int
	// Looked counts the names that were looked at.
	Looked uint64
	// Refused counts what was asked for and not had, by reason.
	Refused [NumRefusals]uint64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Objects: len(s.objects), Views: s.views, Looked: s.looked, Refused: s.refused}
}

// reviewEvery is how often rights are asked for again that have run out, and certificates looked at that may have
// expired.
const reviewEvery = 20 * time.Second

// Run looks at names, and asks for rights, again when they run out, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.look(ctx) })
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
	for _, a := range s.accounts {
		switch {
		case !a.idle():
			if a.asked() && !a.decided(now) {
				s.askFor(a)
			}
		case !a.decided(now):
			delete(s.accounts, a.accountKey)
		}
	}
}
