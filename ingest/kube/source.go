package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pilotd/pilotd/ingest"
)

// SourceName is the name, in events, of the source for pilotd's own cluster.
const SourceName = "kube"

// sourceName returns the name of a source. For another cluster it contains the cluster's id.
func sourceName(o Options) string {
	if o.Cluster == "" {
		return SourceName
	}
	return SourceName + " " + o.Cluster
}

// Options say which server to read and whom to tell.
type Options struct {
	// Kubeconfig is the path of a file. If it is empty, $KUBECONFIG, ~/.kube/config and the pod's own service account
	// are tried, in this order.
	Kubeconfig string
	// Config is used instead of Kubeconfig when set.
	Config *rest.Config
	// Cluster is the id of the server's cluster; empty for the cluster that pilotd itself belongs to.
	Cluster string
	// Namespace restricts the source to the objects of one namespace; empty means all.
	Namespace string
	// RootNamespace is the namespace with the mesh configuration; empty means "istio-system".
	RootNamespace string
	// Revision selects the ConfigMap of the mesh configuration: "istio-REVISION", or "istio" if it is empty or
	// "default". Objects of kinds with a CRD that name another revision are not read.
	Revision string
	// MeshElsewhere says that another source provides the mesh configuration, so that Synced does not wait for this
	// one's.
	MeshElsewhere bool
	// Grace is how long Synced waits for an optional kind that cannot be read; 0 means 20 s.
	Grace time.Duration
	// QPS and Burst limit the rate of requests; 0 means 80 and 160.
	QPS   float32
	Burst int
	// Sink receives the objects.
	Sink ingest.Sink
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Source reads an API server.
type Source struct {
	// Immutable after New.
	sink    ingest.Sink
	log     *slog.Logger
	clients *clients
	scope   scope
	outbox  *outbox
	panics  panics
}

// New returns a source. It does not connect. It returns an error if no server is configured, or the configuration is
// invalid.
func New(o Options) (*Source, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("source", sourceName(o))
	clients, err := newClients(o)
	if err != nil {
		return nil, err
	}
	return &Source{sink: o.Sink, log: o.Log, clients: clients, scope: newScope(o), outbox: newOutbox(o.Log, o.Grace)},
		nil
}

// Name returns the name of the source in events.
func (s *Source) Name() string { return s.scope.source }

// Waiting describes each resource that Synced waits for: since when, and why.
func (s *Source) Waiting() []string { return s.outbox.missing() }

// Run reads the server and follows it until ctx ends, and then returns nil.
func (s *Source) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quieter{s.log.Handler()}))
	var reading sync.WaitGroup
	defer s.clients.close()
	defer reading.Wait()
	kinds, _ := kindsOf(s.scope)
	for _, k := range kinds {
		s.outbox.expect(k)
	}
	s.outbox.expect(crdKind(s.scope))
	for _, k := range kinds {
		s.read(ctx, &reading, func(ctx context.Context) { s.follow(ctx, k) })
	}
	s.read(ctx, &reading, s.followCRDs)
	s.deliver(ctx)
	return nil
}

// read starts a reader of one kind.
func (s *Source) read(ctx context.Context, reading *sync.WaitGroup, follow func(context.Context)) {
	reading.Add(1)
	go func() {
		defer reading.Done()
		defer func() {
			if cause := recover(); cause != nil {
				_ = s.panicked("reader", cause)
			}
		}()
		follow(ctx)
	}()
}

// follow passes the objects of one kind to the outbox until ctx ends.
func (s *Source) follow(ctx context.Context, k kind) {
	lw := &cache.ListWatch{}
	client := s.clients.of(k.GroupVersions()[0])
	lw.ListWithContextFunc, lw.WatchFuncWithContext = k.requests(client, s)
	s.reflect(ctx, k.resource, lw, newCollector(k, s))
}

// deliver passes the content of the outbox to the sink, everything that is there at once, until ctx ends.
func (s *Source) deliver(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.outbox.tick(time.Now())
		case <-s.outbox.ready:
			s.hand(s.outbox.take())
		}
	}
}
