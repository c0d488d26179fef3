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

// Store says which keys are wanted and takes those that were found. *ingest.Store is one.
type Store interface {
	WantedKeys() ingest.WantedKeys
	WantedKeysChanged() <-chan struct{}
	PutKeys(map[ingest.KeyPlace]ingest.Keys)
	Synced(source string)
}

// Options are the settings of a Fetcher. Only Fetch has no default.
type Options struct {
	// Fetch returns the keys at a place: see Web.Keys. Its context ends when it has taken too long.
	Fetch func(context.Context, ingest.KeyPlace) (string, error)
	// Refresh is the time from one good fetch of a place to the next; 20 minutes when 0.
	Refresh time.Duration
	// FirstWait is how long the first fetches may keep pilotd from being ready, once all other sources are read; 10
	// seconds when 0. Without the wait all tokens would be refused for a moment after each start.
	FirstWait time.Duration
	// AtOnce is how many places are asked at once; 8 when 0.
	AtOnce int
	// Log is the logger.
	Log *slog.Logger
}

// The pause after a failure doubles from shortestPause up to longestPause, or Refresh if that is less.
const (
	shortestPause = time.Second
	longestPause  = 5 * time.Minute
)

// Fetcher fetches keys. It is the source ingest.KeySource.
type Fetcher struct {
	// Immutable after New.
	options Options
	store   Store
	results chan result

	// good and failed count fetches.
	good, failed atomic.Uint64
	waiting      atomic.Bool // for first keys

	// Owned by the goroutine of Run.
	places map[ingest.KeyPlace]*place
	busy   int
	work   sync.WaitGroup // fetches under way
	// first are the places that must have been tried before Synced is told, from the moment on that all other sources
	// are Synced; told: it was.
	first   map[ingest.KeyPlace]struct{}
	settled bool
	told    bool
}

// place is what is known of one place.
type place struct {
	time     time.Duration // a fetch may take
	due      time.Time
	busy     bool
	tried    bool
	failures int
	keys     ingest.Keys
}

// result is what a fetch came to.
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

// Name returns ingest.KeySource.
func (f *Fetcher) Name() string { return ingest.KeySource }

// Waiting says what is waited for before the Fetcher is Synced.
func (f *Fetcher) Waiting() []string {
	if f.waiting.Load() {
		return []string{"the first keys of tokens' issuers"}
	}
	return nil
}

// Counts returns how many fetches were good and how many failed.
func (f *Fetcher) Counts() (good, failed uint64) { return f.good.Load(), f.failed.Load() }

// Run fetches until ctx ends; it returns when no fetch is under way any more.
func (f *Fetcher) Run(ctx context.Context) error {
	defer f.work.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var late <-chan time.Time // ends the wait for first keys
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

// look brings the places to what is wanted now. Called by Run alone.
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

// tell tells the Store that this source is Synced, once the first places were tried or it is late.
func (f *Fetcher) tell(late bool) {
	if !f.told && f.settled && (late || len(f.first) == 0) {
		f.told = true
		f.waiting.Store(false)
		f.store.Synced(ingest.KeySource)
	}
}

// start begins the fetches that are due, as many as may be under way, and returns the time until the next is due.
func (f *Fetcher) start(ctx context.Context) time.Duration {
	now, next := time.Now(), f.options.Refresh
	for key, p := range f.places {
		wait := p.due.Sub(now)
		switch {
		case p.busy:
		case wait > 0:
			next = min(next, wait)
		case f.busy < f.options.AtOnce: // Else a result comes first.
			p.busy = true
			f.busy++
			f.work.Add(1)
			go f.fetch(ctx, key, p.time)
		}
	}
	return next
}

// fetch asks one place and tells Run what came of it.
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

// take keeps what a fetch came to. The last good keys stay when it failed.
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
		return // nobody wants it any more
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

// jittered returns a time within a tenth of d, so that replicas and places do not ask all at once.
func jittered(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1)) // #nosec G404 -- it spreads load, and is no secret
}
