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

// Options are the settings of a Fetcher. Every field except Fetch has a default.
type Options struct {
	// Fetch returns the keys at a place: see Web.Keys. Its context ends at the time limit.
	Fetch func(context.Context, ingest.KeyPlace) (string, error)
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
	work   sync.WaitGroup // fetches in progress
	// first are the places that were wanted when all other sources had synced and have not been tried yet. When it is
	// empty, this source is reported as synced, and told is set.
	first   map[ingest.KeyPlace]struct{}
	settled bool
	told    bool
}

// place is the state of one place.
type place struct {
	time     time.Duration // limit of one fetch
	due      time.Time
	busy     bool
	tried    bool
	failures int
	keys     ingest.Keys
}

// result is the result of a fetch.
type result struct {
	place ingest.KeyPlace
	keys  string
	err   error
}

// New makes a Fetcher for a Store.
func New(store Store, o Options) *Fetcher {
	o.Refresh, o.FirstWait = cmp.Or(o.Refresh, 20*time.Minute), cmp.Or(o.FirstWait, 10*time.Second)
	o.AtOnce = cmp.Or(o.AtOnce, 8)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Fetcher{options: o, store: store, results: make(chan result), places: map[ingest.KeyPlace]*place{}}
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
	wanted, gone := f.store.WantedKeys(), map[ingest.KeyPlace]ingest.Keys{}
	for p, t := range wanted.Places {
		if f.places[p] == nil {
			f.places[p] = &place{}
		}
		f.places[p].time = min(cmp.Or(t, DefaultTime), longestTime)
	}
	for p := range f.places {
		if _, ok := wanted.Places[p]; !ok {
			gone[p] = ingest.Keys{}
			delete(f.places, p)
			delete(f.first, p)
		}
	}
	if len(gone) > 0 {
		f.store.PutKeys(gone)
	}
	if wanted.Settled && !f.settled {
		f.settled, f.first = true, map[ingest.KeyPlace]struct{}{}
		for p, known := range f.places {
			if !known.tried {
				f.first[p] = struct{}{}
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

// start starts fetches that are due, as many as AtOnce allows, and returns the time until the next one is due.
func (f *Fetcher) start(ctx context.Context) time.Duration {
	now, next := time.Now(), f.options.Refresh
	for key, p := range f.places {
		wait := p.due.Sub(now)
		switch {
		case p.busy:
		case wait > 0:
			next = min(next, wait)
		case f.busy < f.options.AtOnce: // otherwise a result comes first
			p.busy = true
			f.busy++
			f.work.Add(1)
			go f.fetch(ctx, key, p.time)
		}
	}
	return next
}

// fetch fetches one place and sends the result to Run.
func (f *Fetcher) fetch(ctx context.Context, p ingest.KeyPlace, most time.Duration) {
	defer f.work.Done()
	limited, stop := context.WithTimeout(ctx, most)
	defer stop()
	keys, err := f.options.Fetch(limited, p)
	select {
	case f.results <- result{p, keys, err}:
	case <-ctx.Done():
	}
}

// take stores the result of a fetch. If it failed, the last keys stay.
func (f *Fetcher) take(r result) {
	f.busy--
	delete(f.first, r.place)
	if r.err == nil {
		f.good.Add(1)
	} else {
		f.failed.Add(1)
	}
	p := f.places[r.place]
	if p == nil {
		return // no object names the place any more
	}
	p.busy, p.tried = false, true
	pause := f.options.Refresh
	if r.err == nil {
		p.failures, p.keys = 0, ingest.Keys{Set: r.keys}
	} else {
		pause = min(shortestPause<<min(p.failures, 20), longestPause, pause)
		p.failures++
		p.keys.Problem = r.err.Error()
		f.options.Log.Debug("keys were not fetched", "uri", r.place.URI, "issuer", r.place.Issuer, "error", r.err)
	}
	p.due = time.Now().Add(jittered(pause))
	f.store.PutKeys(map[ingest.KeyPlace]ingest.Keys{r.place: p.keys})
}

// jittered returns a duration within a tenth of d, so that replicas and places do not fetch all at the same time.
func jittered(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1)) // #nosec G404 -- it spreads load, and is no secret
}
