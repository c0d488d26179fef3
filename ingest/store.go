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

// Builder receives what really changed. *snapshot.Builder is one.
type Builder interface {
	// Apply takes ownership of the Delta: the Store never writes it again.
	Apply(*snapshot.Delta)
}

// Settings are facts about the process that values depend on. The zero value describes a cluster with Kubernetes's
// defaults.
type Settings struct {
	// DomainSuffix is the cluster's DNS domain; "cluster.local" when empty.
	DomainSuffix string
	// ClusterID names the cluster; "Kubernetes" when empty.
	ClusterID string
	// Reports receives which objects are refused and why. If nil, the Store makes a registry that logs to Log.
	Reports *report.Registry
	// Aside receives objects of the kinds that become no values. It is called under the Store's lock. nil ignores them.
	Aside func(Event)
	// RegexSize is the largest RE2 program of a regular expression that any proxy of the mesh accepts; 0 means
	// envoytext.IstioRegexSize. An object with a larger one is refused.
	RegexSize int
	// Log is where Reports logs if it is not given; nil means slog.Default().
	Log *slog.Logger
	// Metrics are called as things happen; the zero value reports nothing.
	Metrics Metrics
}

// Metrics are callbacks for what the Store counts. Each may be nil; none may call the Store.
type Metrics struct {
	// Event is called for each object of a kind that a source sends or deletes.
	Event func(value.Kind)
	// Refused is called for each object that is refused.
	Refused func(value.Kind)
	// Standing is called with the number of Rejections after each change of it.
	Standing func(int)
}

// Store joins the objects of all sources and hands what changed to the Builder. It implements Sink; any goroutine may
// call its methods.
//
// What the Store hands over is a function of the objects in force, not of the order in which they came. For each key
// the object in force is the last good version of the first source that ever had a good one, in the order of the names
// given to NewStore; unknown sources come after these, by name. The Store hands nothing over until every source given
// to NewStore is Synced; then the first Delta holds everything.
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
	rejected   int // present number of Rejections
}

// NewStore returns a Store that waits for the sources of these names, the one with precedence first.
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

// Apply takes events that become visible together. Of several events with the same source and key the last one counts.
// If the Store panics over one object, that object stays as it was and the others are applied.
func (s *Store) Apply(events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.joiner.faults.contain(taking, e.Key, func() { s.take(e) })
	}
	s.hand()
}

// Synced tells the Store that source has sent everything it had when it started. After the last expected source the
// Store hands over its first Delta.
func (s *Store) Synced(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, source)
	s.joiner.keys.wake()
	s.hand()
}

// Ready reports whether every expected source is Synced, so that the first Delta has been handed over.
func (s *Store) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) == 0
}

// take applies e to what the sources hold for its key. Called under mu.
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
		key = value.ObjectKey{Kind: value.KindMeshConfig} // there is only one, whatever its sources call it
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
		return // the object has no effect, or only a report
	}
	if after := held.inForce(); after != before {
		s.joiner.put(key, after)
	}
}

// hand passes what changed since the last call to the Builder, once all sources are Synced. Called under mu, so that
// Deltas reach the Builder in order.
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
