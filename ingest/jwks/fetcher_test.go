package jwks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/ingest"
)

// shelf is a Store of its own, with the places that a test wants.
type shelf struct {
	changed chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	wanted ingest.WantedKeys
	keys   map[ingest.KeyPlace]ingest.Keys
	synced int
}

func newShelf(settled bool, uris ...string) *shelf {
	s := &shelf{changed: make(chan struct{}, 1), keys: map[ingest.KeyPlace]ingest.Keys{}}
	s.want(settled, uris...)
	return s
}

// want names places: a URI, or an issuer if "issuer " stands before it, of namespace shop or of the one before a slash.
func (s *shelf) want(settled bool, uris ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = ingest.WantedKeys{Places: map[ingest.KeyPlace]ingest.KeyUse{}, Settled: settled}
	for _, u := range uris {
		key, use := ingest.KeyPlace{URI: u}, ingest.KeyUse{Namespaces: []string{"shop"}}
		if namespace, uri, ok := strings.Cut(u, "/"); ok {
			key.URI, use.Namespaces = uri, []string{namespace}
		}
		if issuer, ok := strings.CutPrefix(key.URI, "issuer "); ok {
			key = ingest.KeyPlace{Issuer: issuer}
		}
		s.wanted.Places[key] = use
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *shelf) WantedKeys() ingest.WantedKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ingest.WantedKeys{Places: maps.Clone(s.wanted.Places), Settled: s.wanted.Settled}
}

func (s *shelf) WantedKeysChanged() <-chan struct{} { return s.changed }

func (s *shelf) PutKeys(found map[ingest.KeyPlace]ingest.Keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, k := range found {
		if s.keys[p] = k; k == (ingest.Keys{}) {
			delete(s.keys, p)
		}
	}
}

func (s *shelf) Synced(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced++
}

func (s *shelf) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.keys) + fmt.Sprint(s.synced)
}

// servers answer fetches by URI and count them.
type servers struct {
	mu sync.Mutex
	// Guarded by mu.
	answers map[string]func(context.Context) (string, error)
	asked   map[string]int
	now     int
	most    int
}

func (s *servers) fetch(ctx context.Context, uri string) (string, error) {
	s.mu.Lock()
	s.asked[uri]++
	s.now++
	s.most = max(s.most, s.now)
	answer := s.answers[uri]
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	return answer(ctx)
}

func (s *servers) set(uri string, answer func(context.Context) (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[uri] = answer
}

func (s *servers) count(uri string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[uri]
}

func answers(keys string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return keys, nil }
}

func fails(context.Context) (string, error) { return "", errors.New("gone") }

func hangs(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// running runs a test in a bubble with a Fetcher.
func running(t *testing.T, store *shelf, o Options, test func(*Fetcher, *servers)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		store.changed = make(chan struct{}, 1) // of the bubble
		asked := &servers{answers: map[string]func(context.Context) (string, error){}, asked: map[string]int{}}
		for p := range store.wanted.Places {
			asked.answers[p.URI] = answers("keys of " + p.URI)
		}
		o.URI, o.Keys, o.Log = asked.fetch, asked.fetch, slog.New(slog.DiscardHandler)
		f := New(store, o)
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		synctest.Wait()
		test(f, asked)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestRefresh: a place is read at once and again after the interval; when that fails, the last good keys stay and the
// pauses between attempts grow, up to five minutes.
func TestRefresh(t *testing.T) {
	store := newShelf(true, "a")
	running(t, store, Options{}, func(f *Fetcher, asked *servers) {
		if store.state() != "map[{a }:{keys of a }]1" || asked.count("a") != 1 {
			t.Errorf("at first: %s, asked %d times", store.state(), asked.count("a"))
		}
		time.Sleep(17 * time.Minute)
		synctest.Wait()
		if asked.count("a") != 1 {
			t.Error("asked again before its time")
		}
		asked.set("a", fails)
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if store.state() != "map[{a }:{keys of a gone}]1" {
			t.Errorf("after a failure: %s", store.state())
		}
		before := asked.count("a")
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := asked.count("a") - before; n < 10 || n > 25 {
			t.Errorf("asked %d times in an hour of failures", n)
		}
		asked.set("a", answers("new"))
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if store.state() != "map[{a }:{new }]1" {
			t.Errorf("when it answers again: %s", store.state())
		}
		if good, failed := f.Counts(); good != 2 || failed < 10 {
			t.Errorf("counted %d and %d", good, failed)
		}
	})
}

// TestFirstKeys: the source is synced when all places that were wanted by then were tried, but for those that take too
// long; later ones keep nobody waiting.
func TestFirstKeys(t *testing.T) {
	store := newShelf(false, "a", "b")
	running(t, store, Options{FirstWait: 3 * time.Second}, func(f *Fetcher, asked *servers) {
		if store.state() != "map[{a }:{keys of a } {b }:{keys of b }]0" || f.Waiting() != nil {
			t.Errorf("before all other sources are synced: %s, waiting for %v", store.state(), f.Waiting())
		}
		asked.set("slow", hangs)
		store.want(true, "a", "slow")
		synctest.Wait()
		if store.state() != "map[{a }:{keys of a }]0" || f.Waiting() == nil {
			t.Errorf("while one is slow: %s, waiting for %v", store.state(), f.Waiting())
		}
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if store.state() != "map[{a }:{keys of a }]1" || f.Waiting() != nil {
			t.Errorf("when it is late: %s, waiting for %v", store.state(), f.Waiting())
		}
		time.Sleep(3 * time.Second) // each fetch has five seconds
		synctest.Wait()
		if store.state() != "map[{a }:{keys of a } {slow }:{ context deadline exceeded}]1" {
			t.Errorf("when it has ended: %s", store.state())
		}
		store.want(true)
		synctest.Wait()
		if store.state() != "map[]1" {
			t.Errorf("when nobody wants any: %s", store.state())
		}
	})
}

// TestFetchesAtOnce: few places are asked at once, and a slow one delays none but those that wait for its turn.
func TestFetchesAtOnce(t *testing.T) {
	var uris []string
	for i := range 40 {
		uris = append(uris, fmt.Sprint("u", i))
	}
	store := newShelf(true)
	for i := range uris {
		uris[i] = fmt.Sprint("ns", i%5, "/", uris[i])
	}
	running(t, store, Options{AtOnce: 4}, func(_ *Fetcher, asked *servers) {
		for i, u := range uris {
			_, u, _ = strings.Cut(u, "/")
			if asked.set(u, answers("k")); i < 3 {
				asked.set(u, hangs)
			}
		}
		store.want(true, uris...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(store.keys) != len(uris) || asked.most > 4 {
			t.Errorf("%d places were read, %d at once", len(store.keys), asked.most)
		}
	})
}

// TestOneFetchForOneURI: a URI that objects name and that two issuers' configurations name is fetched once, for all of
// them; an issuer that moves its keys keeps the last good ones until there are others.
func TestOneFetchForOneURI(t *testing.T) {
	store := newShelf(true)
	running(t, store, Options{}, func(_ *Fetcher, asked *servers) {
		expect := func(when, want string, fetched int) {
			t.Helper()
			synctest.Wait()
			if got := asked.count("keys"); store.state() != want || got != fetched {
				t.Errorf("%s: %s after %d fetches, want %s after %d", when, store.state(), got, want, fetched)
			}
		}
		asked.set("x", answers("keys"))
		asked.set("y", answers("keys"))
		asked.set("keys", answers("k1"))
		store.want(true, "issuer x", "issuer y", "keys")
		expect("at first", "map[{ x}:{k1 } { y}:{k1 } {keys }:{k1 }]1", 1)
		asked.set("keys", answers("k2"))
		time.Sleep(23 * time.Minute)
		expect("after the interval", "map[{ x}:{k2 } { y}:{k2 } {keys }:{k2 }]1", 2)
		asked.set("elsewhere", fails)
		asked.set("x", answers("elsewhere"))
		time.Sleep(23 * time.Minute)
		expect("while the new place fails", "map[{ x}:{k2 gone} { y}:{k2 } {keys }:{k2 }]1", 3)
		asked.set("elsewhere", answers("k3"))
		asked.set("y", fails)
		time.Sleep(21 * time.Minute)
		expect("when it answers", "map[{ x}:{k3 } { y}:{k2 gone} {keys }:{k2 }]1", 4)
		store.want(true, "issuer x", "elsewhere")
		expect("when objects name what an issuer has", "map[{ x}:{k3 } {elsewhere }:{k3 }]1", 4)
		store.want(true, "elsewhere")
		expect("when the issuer is gone", "map[{elsewhere }:{k3 }]1", 4)
		store.want(true)
		expect("when nobody wants any", "map[]1", 4)
	})
}

// TestSlowIssuersOfOneNamespace: however many places the objects of one namespace name that never answer, those of
// another one are fetched at once.
func TestSlowIssuersOfOneNamespace(t *testing.T) {
	var uris []string
	for i := range 1000 {
		uris = append(uris, fmt.Sprint("hostile/u", i))
	}
	store := newShelf(true)
	running(t, store, Options{}, func(_ *Fetcher, asked *servers) {
		for i := range uris {
			asked.set(fmt.Sprint("u", i), hangs)
		}
		store.want(true, uris...)
		synctest.Wait()
		asked.set("good", answers("k"))
		store.want(true, append(uris, "shop/good")...)
		synctest.Wait()
		if keys := store.state(); !strings.Contains(keys, "{good }:{k }") {
			t.Errorf("the keys of another namespace wait: %s", keys)
		}
	})
}
