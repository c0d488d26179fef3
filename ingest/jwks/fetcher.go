package jwks

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/ingest"
)

// Store names the keys that are wanted and receives those that were fetched. *ingest.Store implements it.
type Store interface {
	WantedKeys() ingest.WantedKeys
	WantedKeysChanged() <-chan struct{}
	PutKeys(map[ingest.KeyPlace]ingest.Keys)
	Synced(source string)
}

// Options are the settings of a Fetcher. Every field except URI and Keys has a default.
type Options struct {
	// URI returns where an issuer's keys are, and Keys the keys at a URI: see Web. Their contexts end at the time limit.
	URI, Keys func(context.Context, string) (string, error)
	// Refresh is the time between successful fetches of a place; 0 means 20 minutes.
	Refresh time.Duration
	// FirstWait is how long the first fetches may delay pilotd's readiness after all other sources have synced; 0 means
	// 10 seconds. Without this wait proxies would refuse all tokens for a moment after each start of pilotd.
	FirstWait time.Duration
	// AtOnce is how many places are fetched at the same time; 0 means 8.
	AtOnce int
	// Log is the logger.
	Log *slog.Logger
}

// The pause after a failure doubles from shortestPause up to longestPause, or Refresh if that is less.
const (
	shortestPause = time.Second
	longestPause  = 5 * time.Minute
)

// Fetcher fetches keys. It is the source with the name ingest.KeySource.
type Fetcher struct {
	// Immutable after New.
	options Options
	store   Store
	results chan result

	// good and failed count finished fetches.
	good, failed atomic.Uint64
	waiting      atomic.Bool // whether first keys are waited for

	// Owned by the goroutine of Run.
	places map[ingest.KeyPlace]*place
	busy   int
	by     map[string]int // of these, by the namespace that is charged
	work   sync.WaitGroup // fetches in progress
	// first are the places that were wanted when all other sources had synced and have not been tried yet. When it is
	// empty, this source is reported as synced, and told is set.
	first   map[ingest.KeyPlace]struct{}
	settled bool
	told    bool
}

// result is the result of a fetch: keys or, of an issuer, the URI of its keys.
type result struct {
	place ingest.KeyPlace
	text  string
	err   error
	by    string // who was charged
}

// New makes a Fetcher for a Store.
func New(store Store, o Options) *Fetcher {
	o.Refresh, o.FirstWait = cmp.Or(o.Refresh, 20*time.Minute), cmp.Or(o.FirstWait, 10*time.Second)
	o.AtOnce = cmp.Or(o.AtOnce, 8)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Fetcher{options: o, store: store, results: make(chan result), places: map[ingest.KeyPlace]*place{},
		by: map[string]int{}}
}

// Name returns the name of this source, ingest.KeySource.
func (f *Fetcher) Name() string { return ingest.KeySource }

// Waiting returns what has to happen before this source is synced.
func (f *Fetcher) Waiting() []string {
	if f.waiting.Load() {
		return []string{"the first keys of tokens' issuers"}
	}
	return nil
}

// Counts returns how many fetches succeeded and how many failed.
func (f *Fetcher) Counts() (good, failed uint64) { return f.good.Load(), f.failed.Load() }

// Run fetches keys until ctx ends. It returns when no fetch is in progress any more.
func (f *Fetcher) Run(ctx context.Context) error {
	defer f.work.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var late <-chan time.Time // fires when FirstWait is over
	f.look()
	for {
		if f.settled && late == nil {
			wait := time.NewTimer(f.options.FirstWait)
			defer wait.Stop()
			late = wait.C
		}
		f.tell(false)
		next := time.NewTimer(f.start(ctx))
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-f.store.WantedKeysChanged():
			f.look()
		case r := <-f.results:
			f.take(r)
		case <-late:
			f.tell(true)
		case <-next.C:
		}
		next.Stop()
	}
}

// look adds new places and removes those that are no longer wanted. Only Run calls it.
func (f *Fetcher) look() {
	wanted, found := f.store.WantedKeys(), map[ingest.KeyPlace]ingest.Keys{}
	for key, use := range wanted.Places {
		p := f.place(key)
		p.use = use
		if p.wanted {
			continue
		}
		p.wanted = true
		if k, known := f.keysOf(key); known { // it has the keys of an issuer
			found[key] = k
		}
	}
	for key, p := range f.places {
		if _, ok := wanted.Places[key]; !ok && p.wanted {
			found[key], p.wanted = ingest.Keys{}, false
			f.leave(key)
		}
	}
	if len(found) > 0 {
		f.store.PutKeys(found)
	}
	if wanted.Settled && !f.settled {
		f.settled, f.first = true, map[ingest.KeyPlace]struct{}{}
		for key := range wanted.Places {
			if _, known := f.keysOf(key); !known {
				f.first[key] = struct{}{}
			}
		}
		f.waiting.Store(len(f.first) > 0)
	}
}

// tell reports this source as synced, once the first places were tried or FirstWait is over.
func (f *Fetcher) tell(late bool) {
	if !f.told && f.settled && (late || len(f.first) == 0) {
		f.told = true
		f.waiting.Store(false)
		f.store.Synced(ingest.KeySource)
	}
}

// start starts fetches that are due, as many as AtOnce allows, and returns the time until the next one is due. Those of
// namespaces with the fewest fetches under way come first.
func (f *Fetcher) start(ctx context.Context) time.Duration {
	now, next := time.Now(), f.options.Refresh
	var due []ingest.KeyPlace
	for key, p := range f.places {
		wait := p.due.Sub(now)
		switch {
		case p.busy:
		case wait > 0:
			next = min(next, wait)
		default:
			due = append(due, key)
		}
	}
	for len(due) > 0 && f.busy < f.options.AtOnce { // otherwise a result comes first
		first, least := 0, f.owner(due[0])
		for i, key := range due[1:] {
			if by := f.owner(key); f.by[by] < f.by[least] {
				first, least = i+1, by
			}
		}
		if f.by[least] >= max(f.options.AtOnce/2, 1) {
			break
		}
		key := due[first]
		due[first], due = due[0], due[1:]
		p := f.places[key]
		p.busy = true
		f.busy++
		f.by[least]++
		f.work.Add(1)
		go f.fetch(ctx, result{place: key, by: least}, f.limit(p))
	}
	return next
}

// owner returns the namespace that is charged for a fetch: of those that want the place the one with the fewest fetches
// under way, so that no other one can make it wait by naming the place too.
func (f *Fetcher) owner(key ingest.KeyPlace) (by string) {
	found := false
	for use := range f.uses(f.places[key]) {
		for _, ns := range use.Namespaces {
			if !found || f.by[ns] < f.by[by] {
				by, found = ns, true
			}
		}
	}
	return by
}

// limit returns how long a fetch of a place may take.
func (f *Fetcher) limit(p *place) time.Duration {
	most := time.Duration(0)
	for use := range f.uses(p) {
		most = max(most, use.Time)
	}
	return min(cmp.Or(most, DefaultTime), longestTime)
}

// fetch fetches one place, for at most a time, and sends the result to Run.
func (f *Fetcher) fetch(ctx context.Context, r result, most time.Duration) {
	defer f.work.Done()
	limited, stop := context.WithTimeout(ctx, most)
	defer stop()
	if r.place.URI == "" {
		r.text, r.err = f.options.URI(limited, r.place.Issuer)
	} else {
		r.text, r.err = f.options.Keys(limited, r.place.URI)
	}
	select {
	case f.results <- r:
	case <-ctx.Done():
	}
}

// take stores the result of a fetch. If it failed, the last keys stay.
func (f *Fetcher) take(r result) {
	f.busy--
	if f.by[r.by]--; f.by[r.by] == 0 {
		delete(f.by, r.by)
	}
	if r.err == nil {
		f.good.Add(1)
	} else {
		f.failed.Add(1)
	}
	p := f.places[r.place]
	if p == nil {
		return // nobody wants the place any more
	}
	p.busy, p.tried = false, true
	pause := f.options.Refresh
	switch {
	case r.err != nil:
		pause = min(shortestPause<<min(p.failures, 20), longestPause, pause)
		p.failures++
		p.keys.Problem = r.err.Error()
		f.options.Log.Debug("keys were not fetched", "uri", shown(r.place.URI), "issuer", shown(r.place.Issuer),
			"error", r.err)
	case r.place.URI == "":
		p.failures, p.keys.Problem = 0, ""
		f.locate(r.place, r.text)
	default:
		p.failures, p.keys = 0, ingest.Keys{Set: r.text}
	}
	p.due = time.Now().Add(jittered(pause))
	f.put(r.place)
}

// put passes on what is known of a place, and of the issuers whose keys are there.
func (f *Fetcher) put(key ingest.KeyPlace) {
	found := map[ingest.KeyPlace]ingest.Keys{}
	add := func(key ingest.KeyPlace) {
		if k, known := f.keysOf(key); known && f.places[key].wanted {
			found[key] = k
			delete(f.first, key)
		}
	}
	add(key)
	for issuer := range f.places[key].issuers {
		add(issuer)
	}
	if len(found) > 0 {
		f.store.PutKeys(found)
	}
}

// jittered returns a duration within a tenth of d, so that replicas and places do not fetch all at the same time.
func jittered(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1)) // #nosec G404 -- it spreads load, and is no secret
}
