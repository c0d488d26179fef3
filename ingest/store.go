package ingest

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Builder takes what really changed. *snapshot.Builder is one.
type Builder interface {
	// Apply takes a Delta for good: the Store never writes it again.
	Apply(*snapshot.Delta)
}

// Settings are the process's own facts that values depend on. The zero value is that of a cluster with Kubernetes's
// defaults.
type Settings struct {
	// DomainSuffix is the cluster's DNS domain; "cluster.local" when empty.
	DomainSuffix string
	// ClusterID names the cluster; "Kubernetes" when empty.
	ClusterID string
	// Reports is told which objects are refused and why; one that logs to Log when nil.
	Reports *report.Registry
	// Aside takes objects of the kinds that become no values, under the Store's lock; nil for nobody.
	Aside func(Event)
	// RegexSize is the largest RE2 program of a regular expression that any of the proxies takes,
	// envoytext.IstioRegexSize when 0. An object with a larger one is refused.
	RegexSize int
	// Log is where Reports logs when it is not given; slog.Default() when nil.
	Log *slog.Logger
	// Metrics are told what happens; none when zero.
	Metrics Metrics
}

// Metrics is what the Store reports of itself. Each may be nil; none may call the Store.
type Metrics struct {
	// Event counts an object of a kind that a source sent or deleted.
	Event func(value.Kind)
	// Refused counts an object that was refused.
	Refused func(value.Kind)
	// Standing is the number of Rejections now.
	Standing func(int)
}

// Store joins the objects of all sources and hands what changed to the Builder. It implements Sink; all methods may be
// called by any goroutine.
//
// What it hands over is a function of the objects in force, whatever the order in which they came. In force is, for
// each key, the object of the first source (in the order given to NewStore; unknown sources come after these, by name)
// that holds a version which was ever good; of a source's versions it is the last good one. Nothing is handed over
// until every source given to NewStore is Synced: the first Delta holds everything.
type Store struct {
	// Immutable after NewStore.
	builder  Builder
	settings Settings
	order    []string
	judge    *Judge

	mu sync.Mutex
	// Guarded by mu.
	stripper   Stripper
	joiner     *joiner
	objects    map[value.ObjectKey]versions
	unreadable map[location][]Rejection
	waiting    map[string]struct{}
	rejected   int // Rejections now
}

// NewStore makes a Store that waits for the sources of these names, the most important first.
func NewStore(b Builder, settings Settings, sources ...string) *Store {
	if settings.DomainSuffix == "" {
		settings.DomainSuffix = "cluster.local"
	}
	if settings.ClusterID == "" {
		settings.ClusterID = "Kubernetes"
	}
	if settings.Reports == nil {
		settings.Reports = report.New(report.Options{Log: settings.Log})
	}
	if settings.RegexSize == 0 {
		settings.RegexSize = envoytext.IstioRegexSize
	}
	s := &Store{
		builder: b, settings: settings, order: slices.Clone(sources), judge: NewJudge(settings.RegexSize),
		joiner:     newJoiner(settings.DomainSuffix, settings.ClusterID),
		objects:    map[value.ObjectKey]versions{},
		unreadable: map[location][]Rejection{},
		waiting:    map[string]struct{}{},
	}
	s.joiner.faults = faults{reports: settings.Reports, standing: map[report.Subject]struct{}{}}
	for _, name := range sources {
		s.waiting[name] = struct{}{}
	}
	return s
}

// Apply takes events that become visible together. Of several events of one source and key the last counts.
// A fault over one of them leaves that object as it was.
func (s *Store) Apply(events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.joiner.faults.contain(taking, e.Key, func() { s.take(e) })
	}
	s.hand()
}

// Synced tells that source has sent all that it had when it started. The last expected source opens the Store.
func (s *Store) Synced(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, source)
	s.joiner.keys.wake()
	s.hand()
}

// Ready reports whether every expected source is Synced, and so the first Delta handed over.
func (s *Store) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) == 0
}

// take brings one key to what its sources hold after e. Called under mu.
func (s *Store) take(e Event) {
	count(s.settings.Metrics.Event, e.Key.Kind)
	k, key := s.joiner.kinds[e.Key.Kind], e.Key
	if k != nil && k.Aside {
		if s.settings.Aside != nil {
			s.settings.Aside(e)
		}
		return
	}
	e.Object = k.Strip(&s.stripper, e.Object)
	if key.Kind == value.KindMeshConfig {
		key = value.ObjectKey{Kind: value.KindMeshConfig} // There is one, whatever its sources call it.
	}
	held := s.objects[key]
	before := held.inForce()
	held = s.version(held, e)
	if len(held) == 0 {
		delete(s.objects, key)
	} else {
		s.objects[key] = held
	}
	s.tellOfObject(key, held)
	if k == nil || k.put == nil {
		return // nothing of it is in force, or only reported
	}
	if after := held.inForce(); after != before {
		s.joiner.put(key, after)
	}
}

// hand passes on what differs since the last time, once the Store is open. Called under mu, so that Deltas reach the
// Builder in order.
func (s *Store) hand() {
	if len(s.waiting) > 0 {
		return
	}
	d := s.joiner.flush()
	s.tellOfUnresolved()
	if d != nil {
		s.builder.Apply(d)
	}
}

func count(f func(value.Kind), k value.Kind) {
	if f != nil {
		f(k)
	}
}
