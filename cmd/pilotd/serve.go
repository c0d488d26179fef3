package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/keepalive"

	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/cmd/build"
	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
	"github.com/pilotd/pilotd/cmd/pilotd/secure"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/file"
	"github.com/pilotd/pilotd/ingest/kube"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/secrets"
	"github.com/pilotd/pilotd/shard/grpcstream"
	"github.com/pilotd/pilotd/status"
)

// source reads objects until its context ends.
type source interface {
	Name() string
	Run(context.Context) error
	// Waiting says what the source waits for before its initial state is complete. Any goroutine may call it.
	Waiting() []string
}

// serve runs pilotd until ctx ends, then drains streams and returns.
//
// It opens all listeners before it starts anything, so that an address in use is the first thing to be reported.
func serve(ctx context.Context, o *options, log *slog.Logger, meshFile bool) error {
	late := &lateSink{}
	hook := newWebhook(o, log)
	var names []string
	tap := &meshTap{Sink: late, to: hook, sources: func() int { return len(names) }, synced: map[string]bool{}}
	sources, err := newSources(o, tap, log, meshFile)
	if err != nil {
		return err
	}
	for _, s := range sources {
		names = append(names, s.Name())
	}
	given := readMemory()
	memory := given.limits()
	memory.tell()
	o.limit(ownResources(memory.all))
	server, security, err := newServers(o, log, append(slices.Clone(names), ingest.KeySource))
	if err != nil {
		return err
	}
	_, underway := server.Shards.Underway()
	log.Info("limits", "memory", memory.all, "memoryFrom", memory.from, "memoryCollector", debug.SetMemoryLimit(-1),
		"streams", o.maxStreams, "connections", o.maxConnections, "bytesUnderway", underway, "bytesHeldInAll",
		o.maxBytesHeldInAll)
	late.Store = server.Store
	sources = append(sources, newKeys(o, server, log))
	ports, err := listenGRPC(o, server, security, log)
	if err != nil {
		return err
	}
	pages := status.Handler(server.Metrics, status.Pages{
		Ready: func() (bool, string) { return ready(server, sources, ports.waiting()) },
		Debug: server.Pages(), Version: build.Text(), Access: o.debugAccess(), Log: log})
	web, err := listenHTTP(o, pages, log)
	if err != nil {
		return err
	}
	webhooks, err := hook.listen(o, security, log)
	if err != nil {
		return err
	}
	hook.collect(server.Metrics)
	hook.reports = server.Reports

	// Planning and reading continue while streams drain; the context work ends all of it.
	work, stop := context.WithCancel(context.Background())
	defer stop()
	group, failed := errgroup.WithContext(work)
	group.Go(func() error { server.Run(work); return nil })
	group.Go(func() error {
		watchMemory(work, func() memoryLimits { return given.now().limits() }, server.Shards.MemoryRead)
		return nil
	})
	for _, s := range sources {
		group.Go(func() error { return s.Run(work) })
	}
	group.Go(func() error { return security.Run(work) })
	// A replica that is ending must neither receive clients from others nor send its own away to balance.
	group.Go(func() error { return balance(ctx, o, server, log) })
	for _, p := range ports {
		group.Go(p.serve)
	}
	if webhooks != nil {
		web = append(web, webhooks)
		group.Go(func() error { return hook.follow(work, o) })
	}
	for _, w := range web {
		group.Go(func() error { return w.run() })
	}
	log.Info("pilotd is running", "version", build.Text(), "xds", o.grpcAddr, "secure", o.secureGRPCAddr,
		"http", o.httpAddr, "monitoring", o.monitoringAddr, "sources", names)

	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	shutDown(o, server, web, log)
	stop()
	return group.Wait()
}

// shutDown drains the streams, then closes the remaining servers.
func shutDown(o *options, server *discovery.Server, web []*webServer, log *slog.Logger) {
	log.Info("shutting down")
	drain, cancel := context.WithTimeout(context.Background(), o.shutdownDuration+time.Second/4)
	defer cancel()
	if err := server.Streams.Shutdown(drain); errors.Is(err, context.DeadlineExceeded) {
		log.Warn("streams were cut off: they did not end in time", "shutdownDuration", o.shutdownDuration)
	}
	for _, w := range web {
		_ = w.server.Close() // readers of pages and API servers retry
	}
}

// newServers makes the discovery service, and the part that authenticates its clients and issues certificates.
func newServers(o *options, log *slog.Logger, sources []string) (*discovery.Server, *secure.Server, error) {
	var security *secure.Server
	settings := discoveryOptions(o, log, sources)
	settings.Authenticate = func(ctx context.Context) (proxy.Peer, error) { return security.Peer(ctx) }
	api, err := newAPI(o, log.With(scopeKey, "security"))
	if err != nil {
		return nil, nil, err
	}
	if api != nil {
		settings.Rights = api
		settings.Cluster = func(tell func(secrets.Object, secrets.Found)) discovery.SecretSource {
			return cluster.NewCredentials(api, log.With(scopeKey, "secrets"), tell)
		}
	}
	server := discovery.New(settings)
	server.Metrics.Counter("pilotd_log_lines_dropped_total",
		"Lines of the log that were dropped, because they came faster than they could be written.",
		func() float64 { return float64(o.droppedLines()) })
	security, err = newSecure(o, server, api, log)
	return server, security, err
}

// ready reports whether proxies are answered on every port, and if not, what each source or port waits for.
func ready(server *discovery.Server, sources []source, waiting string) (bool, string) {
	ok, missing := server.Ready()
	if waiting != "" {
		missing = strings.TrimPrefix(missing+"\n"+waiting, "\n")
	}
	if ok {
		return waiting == "", missing
	}
	for _, s := range sources {
		for _, w := range s.Waiting() {
			missing += "\n" + s.Name() + ": waiting for " + w
		}
	}
	return false, missing
}

// requestTime bounds how long a client may take to send a request once it has begun, and to send the first request of a
// stream. Clients send the first one together with the stream, so a delay there means that this process is short of
// time.
const requestTime = 20 * time.Second

// idleConnection is how long a connection without streams stays open, such as that of a client that was refused.
const idleConnection = 5 * time.Minute

func discoveryOptions(o *options, log *slog.Logger, sources []string) discovery.Options {
	return discovery.Options{
		Shards: o.shards, Sources: sources, DomainSuffix: o.domain, ClusterID: o.clusterID, RegexSize: o.maxRegexSize,
		UpstreamRegexSize: o.maxRegexSizeUpstream,
		DebounceAfter:     o.debounceAfter, DebounceMax: o.debounceMax,
		Limits: grpcstream.Limits{
			RequestBytes: o.maxRecvSize, ReceivedInAll: o.maxBytesReceived, Streams: o.maxStreams,
			StreamsPerCaller: o.maxOwnStreams, Connections: o.maxConnections,
			Subscriptions: o.maxSubscriptions, HeldBytes: o.maxBytesHeld, HeldInAll: o.maxBytesHeldInAll,
		},
		Requests: o.maxOwnRequests, Underway: o.maxBytesUnderway, Named: o.maxBytesNamed,
		Keepalive: keepalive.ServerParameters{
			Time: o.keepaliveInterval, Timeout: o.keepaliveTimeout, MaxConnectionIdle: idleConnection,
			MaxConnectionAge: o.keepaliveMaxAge, MaxConnectionAgeGrace: 10 * time.Second,
		},
		Enforcement: keepalive.EnforcementPolicy{MinTime: o.keepaliveInterval / 3, PermitWithoutStream: true},
		Stuck:       o.stuckAfter, RequestTime: requestTime, Drain: o.shutdownDuration, Log: log,
		Instance: instance(), Build: build.Text(),
	}
}

// instance names this process for people: the pod, or the machine.
func instance() string {
	host, _ := os.Hostname()
	return cmp.Or(os.Getenv("POD_NAME"), host)
}

// lateSink is a Sink for sources that are made before the Store, whose settings contain their names.
type lateSink struct{ *ingest.Store }

// newSources makes the sources that the flags name. Earlier ones take precedence where two hold the same object.
func newSources(o *options, sink ingest.Sink, log *slog.Logger, meshFile bool) ([]source, error) {
	log = log.With(scopeKey, "ingest")
	var out []source
	if meshFile || !o.kubernetes() {
		out = append(out, file.NewMesh(o.meshConfig, sink, log))
	}
	if o.kubernetes() {
		k, err := kube.New(kubeOptions(o, sink, log, meshFile))
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	if o.configDir != "" {
		out = append(out, file.New(file.Options{Dir: o.configDir, Sink: sink, RootNamespace: o.namespace, Log: log}))
	}
	return out, nil
}

func kubeOptions(o *options, sink ingest.Sink, log *slog.Logger, meshFile bool) kube.Options {
	return kube.Options{
		Kubeconfig: o.kubeconfig, Namespace: o.watchNamespace, RootNamespace: o.namespace, Revision: o.revision,
		QPS: o.kubeQPS, Burst: o.kubeBurst, Sink: sink, Log: log, MeshElsewhere: meshFile, Grace: o.kindGrace,
	}
}

func listen(flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", flag, addr, err)
	}
	return l, nil
}
