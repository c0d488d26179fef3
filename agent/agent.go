package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/pilotd/pilotd/agent/bootstrap"
	"github.com/pilotd/pilotd/agent/cell"
	"github.com/pilotd/pilotd/agent/dns"
	"github.com/pilotd/pilotd/agent/envoy"
	"github.com/pilotd/pilotd/agent/pod"
	"github.com/pilotd/pilotd/agent/sds"
	"github.com/pilotd/pilotd/agent/secret"
	"github.com/pilotd/pilotd/agent/xdsproxy"
)

// Options are the settings of the agent, from its command line.
type Options struct {
	Kind   pod.Kind
	Domain string
	// Environ is the process environment, in the form of os.Environ.
	Environ []string
	// ProxyLogLevel and ProxyComponentLogLevel are Envoy's log levels.
	ProxyLogLevel, ProxyComponentLogLevel string
	OutlierLog                            string
	// Stdout and Stderr receive Envoy's standard output and its log.
	Stdout, Stderr io.Writer
	Log            *slog.Logger
}

// filesEvery is how often the agent checks mounted files for changes.
const filesEvery = time.Second

// ErrEnvoy says that Envoy has ended by itself.
var ErrEnvoy = errors.New("envoy has ended")

// agent holds the parts that Run assembles.
type agent struct {
	// Immutable after assemble.
	options  Options
	pod      *pod.Pod
	log      *slog.Logger
	secrets  *secret.Secrets
	keep     func(context.Context) // keeps the workload's certificate current
	proxy    *xdsproxy.Proxy
	health   *cell.Cell[xdsproxy.Health] // nil without a probe
	names    *dns.Server                 // nil without a DNS proxy
	resolver *dns.Resolver
	// nameAddresses are where the DNS proxy listens.
	nameAddresses []string
	admin         envoy.Admin
	ending        envoy.Ending
	registry      *prometheus.Registry
	quit          context.CancelCauseFunc // ends the agent

	ready    envoy.Readiness
	draining atomic.Bool
	envoy    *envoy.Process // set before anything is served; nil without Envoy
	work     sync.WaitGroup // goroutines that end when the context of Run ends
}

// errAsked is the reason for an end that a process of the pod has requested.
var errAsked = errors.New("asked to end")

// Run runs the agent until ctx ends, a process of the pod asks it to end, or Envoy exits. When ctx ends, Run drains
// Envoy before it returns.
func Run(ctx context.Context, o Options) error {
	ctx, quit := context.WithCancelCause(ctx)
	defer quit(nil)
	a, err := assemble(o)
	if err != nil {
		return err
	}
	a.quit = quit
	// Envoy needs configuration and secrets while it drains, so what serves them outlives ctx.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer a.work.Wait()
	defer stop()
	closeNames, err := a.listenNames(inner)
	if err != nil {
		return err
	}
	defer closeNames()
	closeSockets, err := a.listen(inner)
	if err != nil {
		return err
	}
	defer closeSockets()
	if err := a.startEnvoy(ctx); err != nil {
		return err
	}
	closeStatus, err := a.listenStatus()
	if err != nil {
		if a.envoy != nil {
			a.envoy.Kill()
		}
		return err
	}
	defer closeStatus()
	if a.envoy == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-a.envoy.Done():
	case <-ctx.Done():
		a.draining.Store(true)
		a.envoy.End(inner, a.admin, a.ending)
		return nil
	}
	if err := a.envoy.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrEnvoy, err)
	}
	return nil
}

// assemble reads the pod's settings and builds the parts, without starting any of them.
func assemble(o Options) (*agent, error) {
	p, err := pod.Read(pod.Source{Kind: o.Kind, Domain: o.Domain, Env: pod.NewEnv(o.Environ), Files: os.DirFS("."),
		Addresses: interfaceAddresses()})
	if err != nil {
		return nil, err
	}
	for _, w := range p.Warnings {
		o.Log.Warn(w)
	}
	a := &agent{options: o, pod: p, log: o.Log, registry: prometheus.NewRegistry()}
	if err := a.makeSecrets(); err != nil {
		return nil, err
	}
	from := discovery(p)
	if !from.Plaintext && from.Roots != "SYSTEM" {
		if _, err := os.Stat(from.Roots); err != nil {
			return nil, fmt.Errorf("roots of the control plane: %w", err)
		}
	}
	if p.Config.GetReadinessProbe() != nil {
		a.health = &cell.Cell[xdsproxy.Health]{}
	}
	if err := a.makeNames(); err != nil {
		return nil, err
	}
	proxy := xdsproxy.Options{Server: from, Health: a.health, Log: o.Log.With("scope", "xds")}
	if a.names != nil {
		proxy.NameTable = a.names.Take
	}
	a.proxy = xdsproxy.New(proxy)
	loopback := "127.0.0.1"
	if p.IPv6Only() {
		loopback = "[::1]"
	}
	a.admin.Own = []uint32{p.ReadyPort(), p.PrometheusPort()}
	a.admin.URL = fmt.Sprintf("http://%s:%d", loopback, p.Config.ProxyAdminPort)
	a.ending = envoy.Ending{Time: p.Config.TerminationDrainDuration.AsDuration(), InboundOnly: p.Kind == pod.Sidecar,
		OnZero: p.Env.Bool("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", false),
		Least:  p.Env.Duration("MINIMUM_DRAIN_DURATION", 5*time.Second), Every: time.Second}
	a.countThings()
	return a, p.Env.Err()
}

// interfaceAddresses returns the addresses of this network namespace, or none if they cannot be read.
func interfaceAddresses() (out []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

// makeSecrets chooses the source of the workload's certificate.
func (a *agent) makeSecrets() error {
	files := &secret.Files{System: secret.SystemRootFiles(), Log: a.log.With("scope", "secret")}
	a.secrets = &secret.Secrets{Files: files, CRL: crlFile}
	for _, dir := range certificateDirs() {
		if !secret.HasCertificate(dir) {
			continue
		}
		m := &secret.Mounted{Dir: dir, Log: a.log.With("scope", "secret")}
		a.secrets.Workload = &m.Newest
		a.keep = func(ctx context.Context) {
			tick := time.NewTicker(filesEvery)
			defer tick.Stop()
			m.Run(ctx, tick.C)
		}
		return nil
	}
	r, err := requested(a.pod, a.log)
	if err != nil {
		return err
	}
	a.secrets.Workload, a.keep = &r.Newest, r.Run
	return nil
}

// listen opens the sockets that Envoy connects to and starts the goroutines behind them. The returned function closes
// the sockets.
func (a *agent) listen(ctx context.Context) (func(), error) {
	secrets, err := listenSocket(sdsSocket(a.pod))
	if errors.Is(err, errTaken) {
		// Another process, such as a SPIFFE agent, serves certificates.
		a.log.Info("somebody else serves secrets", "socket", sdsSocket(a.pod))
	} else if err != nil {
		return nil, err
	}
	configuration, err := listenSocket(a.xdsSocket())
	if err != nil {
		if secrets != nil {
			secrets.Close()
		}
		return nil, err
	}
	// The first request of a stream lists the versions of everything that Envoy has, so it can be large.
	xds := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest))
	a.proxy.Register(xds)
	a.work.Go(func() { _ = xds.Serve(configuration) })
	served := []*grpc.Server{xds}
	if secrets != nil {
		g := grpc.NewServer()
		sds.New(a.secrets, a.log.With("scope", "secret")).Register(g)
		a.work.Go(func() { _ = g.Serve(secrets) })
		served = append(served, g)
		a.work.Go(func() { a.keep(ctx) })
		a.work.Go(func() {
			tick := time.NewTicker(filesEvery)
			defer tick.Stop()
			a.secrets.Files.Run(ctx, tick.C)
		})
	}
	if a.health != nil {
		if err := a.watchHealth(ctx); err != nil {
			a.log.Error("the application's health is not told", "error", err)
		}
	}
	return func() {
		for _, g := range served {
			g.Stop()
		}
	}, nil
}

const maxRequest = 64 << 20

func (a *agent) xdsSocket() string { return filepath.Join(a.pod.Config.ConfigPath, "XDS") }

// errTaken reports that another process already serves a socket.
var errTaken = errors.New("somebody else serves it")

// listenSocket opens a unix socket, and replaces one that an earlier process has left behind.
func listenSocket(path string) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("socket %s: %w", path, errTaken)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// startEnvoy writes the bootstrap files of Envoy and of gRPC libraries, and starts Envoy if the agent runs one.
func (a *agent) startEnvoy(ctx context.Context) error {
	if err := a.writeGRPC(); err != nil {
		return err
	}
	if a.pod.Env.Bool("DISABLE_ENVOY", false) {
		return nil
	}
	path, err := a.writeBootstrap()
	if err != nil {
		return err
	}
	override := ""
	if name := a.pod.Env.Text("ISTIO_BOOTSTRAP_OVERRIDE", ""); name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("environment variable ISTIO_BOOTSTRAP_OVERRIDE: %w", err)
		}
		override = string(data)
	}
	c := a.pod.Config
	levels, unknown := envoy.KnownComponents(ctx, c.BinaryPath, a.options.ProxyComponentLogLevel)
	for _, name := range unknown {
		a.log.Warn("Envoy has no such component: its level of logging has no effect", "component", name)
	}
	threads := a.pod.Env.Int("ISTIO_CPU_LIMIT", 0)
	if c.Concurrency != nil {
		threads = int(c.Concurrency.Value)
	}
	a.envoy, err = envoy.Start(envoy.Options{Binary: c.BinaryPath, Config: path, Override: override,
		LogLevel: a.options.ProxyLogLevel, ComponentLogLevel: levels, Concurrency: threads,
		DrainTime: c.DrainDuration.AsDuration(), FlushInterval: c.FileFlushInterval.AsDuration(),
		FlushSize: c.FileFlushMinSizeKb, IPv6: a.pod.IPv6Only(), Stdout: a.options.Stdout, Stderr: a.options.Stderr,
		Log: a.log.With("scope", "envoy")})
	return err
}

func (a *agent) writeBootstrap() (string, error) {
	b, err := bootstrap.New(bootstrap.Input{Pod: a.pod, XDS: a.xdsSocket(), SDS: sdsSocket(a.pod),
		SotW: !a.pod.Env.Bool("ISTIO_DELTA_XDS", true), OutlierLog: a.options.OutlierLog})
	if err != nil {
		return "", fmt.Errorf("bootstrap: %w", err)
	}
	text, err := bootstrap.JSON(b)
	if err != nil {
		return "", err
	}
	path := filepath.Join(a.pod.Config.ConfigPath, "envoy-rev.json")
	return path, writeFile(path, text)
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644) // #nosec G306 -- other containers of the pod read it; it holds no secret
}

// writeGRPC writes the bootstrap file of gRPC libraries that speak xDS.
func (a *agent) writeGRPC() error {
	socket, err := filepath.Abs(a.xdsSocket())
	if err != nil {
		return err
	}
	certificates := a.pod.Env.Text("OUTPUT_CERTS", "")
	if certificates == "" {
		certificates = dataDir
	}
	text, err := bootstrap.GRPC(a.pod, socket, certificates)
	if err != nil {
		return err
	}
	path := filepath.Join(a.pod.Config.ConfigPath, "grpc-bootstrap.json")
	return writeFile(a.pod.Env.Text("GRPC_XDS_BOOTSTRAP", path), text)
}
