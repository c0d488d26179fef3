// Package discovery assembles the server: store, snapshot, planner, shards and streams.
//
//	Store ─► Builder ─► Planner ─► Shards ◄─► Streams
//
// It has no flags, reads no source and opens no port, so that the program, the tests and the benchmarks run the same
// server.
package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/keepalive"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/identity/quota"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/secrets"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/shard/grpcstream"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/status"
)

// Options are the settings of a Server.
type Options struct {
	// Shards is the number of workers; 0 means one for each processor.
	Shards int
	// Sources are the names of the sources that must be Synced before any client is answered.
	Sources []string
	// DomainSuffix and ClusterID are as in ingest.Settings.
	DomainSuffix, ClusterID string
	// RegexSize is the largest allowed program of a regular expression, see ingest.Settings; UpstreamRegexSize is the
	// limit for upstream Envoys, see plan.Tables.LimitRegex. 0 means the default.
	RegexSize, UpstreamRegexSize int
	// DebounceAfter and DebounceMax delay configuration changes; see plan.Options.
	DebounceAfter, DebounceMax time.Duration
	// Limits bound what one client can cost.
	Limits grpcstream.Limits
	// Requests bounds the requests that each caller may send in a second, apart from ACKs and NACKs; 0 means no limit.
	Requests int
	// Named bounds the bytes of all names that clients send, above all their subscriptions; 0 means no limit.
	Named int
	// Underway bounds the cost of all clients that are connecting: see shard.Options.
	Underway int
	// Keepalive has the pings and the maximum age of connections, Enforcement how often clients may ping.
	Keepalive   keepalive.ServerParameters
	Enforcement keepalive.EnforcementPolicy
	// Stuck is how long a client may leave responses unread, or unanswered while changes wait for the answer. Drain is
	// the time over which streams end at shutdown.
	Stuck, Drain time.Duration
	// RequestTime is how long a client may take to send a request: see grpcstream.Options.
	RequestTime time.Duration
	// Authenticate finds out who clients are: see grpcstream.Options. nil means that nobody is authenticated.
	Authenticate func(context.Context) (proxy.Peer, error)
	// Rights decides who may read which Secrets; nil allows every proxy those of its own namespace. Cluster, unless
	// nil, provides Secrets and ConfigMaps on request, with precedence over those that Sources read, and is given the
	// callback for what it learns about them.
	Rights  secrets.Rights
	Cluster func(tell func(secrets.Object, secrets.Found)) SecretSource
	Log     *slog.Logger
	// Instance names this process to its clients (the pod's name); Build is its version.
	Instance, Build string
}

// Server is pilotd without its sources and ports.
type Server struct {
	// Immutable after New.
	Store   *ingest.Store
	Builder *snapshot.Builder
	Planner *plan.Planner
	Shards  *shard.Shards
	Streams *grpcstream.Server
	Metrics *status.Metrics
	Reports *report.Registry
	Tables  *plan.Tables
	Names   *ads.NamesTable
	Secrets *secrets.Store
	sources []SecretSource
	told    *secretReports
	files   *secrets.Files
	log     *slog.Logger
	faults  *rate.Limiter

	// ready is closed when the first View is published.
	ready chan struct{}
	once  sync.Once
}

// New assembles a Server. It answers no client before Run is called and every source is Synced.
func New(o Options) *Server {
	s := &Server{Metrics: status.NewMetrics(o.Build), Tables: plan.NewTables(), Names: ads.NewNamesTable(), log: o.Log,
		faults: rate.NewLimiter(faultRate, faultBurst), ready: make(chan struct{})}
	if o.UpstreamRegexSize != 0 {
		s.Tables.LimitRegex(o.UpstreamRegexSize)
	}
	s.Reports = report.New(report.Options{Log: o.Log.With("scope", "config"), Began: s.countProblem})
	s.Planner = plan.NewPlanner(s.Tables, s, plan.Options{
		DebounceAfter: o.DebounceAfter, DebounceMax: o.DebounceMax, Now: time.Now, After: time.After, Took: s.took,
		Faults: s.leftOut, Log: o.Log.With("scope", "plan"),
	})
	s.Names.SetLimit(o.Named)
	s.Builder = snapshot.NewBuilder(s)
	s.keepSecrets(o)
	s.Shards = shard.New(shard.Options{
		Workers: o.Shards, Planner: s.Planner, Names: s.Names, MaxNames: o.Limits.Subscriptions,
		MaxNameBytes: cmp.Or(o.Limits.SubscriptionBytes, 16<<20), Underway: o.Underway, Unanswered: o.Stuck,
		Now: time.Now, After: time.After,
		Endpoints: func() *snapshot.EndpointTable { return s.Builder.View().Endpoints },
		Assembler: encodecache.NewAssembler(identifier(o)), Secrets: secretViews{s.Secrets}, Metrics: s.shardMetrics(),
	})
	s.Store = ingest.NewStore(s.Builder, ingest.Settings{DomainSuffix: o.DomainSuffix, ClusterID: o.ClusterID,
		RegexSize: o.RegexSize, Reports: s.Reports, Aside: s.takeCredential, Metrics: s.storeMetrics()}, o.Sources...)
	s.Streams = grpcstream.New(s.Shards, grpcstream.Options{
		Accept: proxy.Accept, Authenticate: o.Authenticate, Names: s.Names,
		NodeMetadata: proxy.Metadata(), NodeExtensions: proxy.Extensions(), Limits: o.Limits, Keepalive: o.Keepalive,
		Requests: quota.NewRate(o.Requests, time.Now), Enforcement: o.Enforcement,
		Stuck: o.Stuck, RequestTime: o.RequestTime, Drain: o.Drain,
		AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
		Panicked:  s.contained,
	})
	s.gauges()
	return s
}

// identifier returns how this process identifies itself to clients, in the form that istioctl reads.
func identifier(o Options) string {
	b, _ := json.Marshal(map[string]any{"Component": "pilotd", "ID": o.Instance,
		"Info": map[string]string{"version": o.Build}})
	return string(b)
}

// Run plans and serves until ctx ends, and returns when everything has stopped.
func (s *Server) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.Planner.Run(ctx) })
	wg.Go(func() { s.Shards.Run(ctx) })
	wg.Go(func() { s.Secrets.Run(ctx) })
	wg.Go(func() { s.told.run(ctx) })
	for _, source := range s.sources {
		wg.Go(func() { source.Run(ctx) })
	}
	wg.Wait()
}

// Publish passes each View to the planner; it implements snapshot.Listener.
func (s *Server) Publish(v *snapshot.View, d *snapshot.Delta) {
	s.countTriggers(d)
	s.Planner.Publish(v, d)
	s.told.changed(d)
	if v.Snapshot.Mesh != nil {
		s.once.Do(func() {
			s.files.Ready()
			close(s.ready)
		})
	}
}

// Assigned passes a proxy's ResourceSet to the shards. Like Advanced and EndpointsChanged it implements classes.Sink.
func (s *Server) Assigned(id uint64, c *classes.Class, w *classes.ResourceSet) {
	s.Shards.Assigned(id, c, w)
}

// Advanced passes the ResourceSets that a change affects to the shards.
func (s *Server) Advanced(sets map[*classes.Class]*classes.ResourceSet, e classes.Endpoints) {
	s.Shards.Advanced(sets, e)
}

// EndpointsChanged passes changed endpoints to the shards.
func (s *Server) EndpointsChanged(t *snapshot.EndpointTable, services []value.ServiceKey) {
	s.Shards.EndpointsChanged(t, services)
}

// TrustDomains returns the trust domains of the mesh, its own first; none before the first View.
func (s *Server) TrustDomains() []string {
	if m := s.Builder.View().Snapshot.Mesh; m != nil {
		return m.Peers.TrustDomains
	}
	return nil
}

// Ready reports whether the first View has been built from all sources, and if not, what is missing.
func (s *Server) Ready() (bool, string) {
	if !s.Store.Ready() {
		return false, "not every source has been read"
	}
	select {
	case <-s.ready:
		return true, ""
	default:
		return false, "the first view is not built"
	}
}
