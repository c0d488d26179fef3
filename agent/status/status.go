package status

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/pilotd/pilotd/agent/envoy"
	"github.com/pilotd/pilotd/agent/probe"
)

// Time limits of clients.
const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
)

// Options are the settings of a Server.
type Options struct {
	// Ready returns nil if the pod is ready, otherwise the reason.
	Ready func(context.Context) error
	// Probes are the application's probes, by request path.
	Probes map[string]*probe.Probe
	Asker  probe.Asker
	// Metrics are the sources of metrics.
	Metrics Metrics
	// Quit ends the agent; Drain drains Envoy.
	Quit  func()
	Drain func(context.Context) error
	// Names returns the names that the DNS proxy knows, as JSON. nil means that there is no DNS proxy.
	Names func() []byte
	// Admin is Envoy's admin page. Its URL is empty if there is no Envoy.
	Admin envoy.Admin
	Log   *slog.Logger
}

// Server serves the agent's status port.
type Server struct {
	// Immutable after New.
	options Options
	http    *http.Server
}

// New returns a Server.
func New(o Options) *Server {
	s := &Server{options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz/ready", s.ready)
	mux.HandleFunc("/metrics", s.metrics)
	mux.HandleFunc("/stats/prometheus", s.metrics)
	mux.HandleFunc("/app-health/", s.application)
	mux.HandleFunc("/app-lifecycle/", s.application)
	for path, h := range map[string]http.HandlerFunc{"POST /quitquitquit": s.quit, "POST /drain": s.drain,
		"/debug/ndsz": s.names, "/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline,
		"/debug/pprof/profile": pprof.Profile, "/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace} {
		mux.HandleFunc(path, fromPod(h))
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	return s
}

// Serve serves a listener until Close is called.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// Close closes all listeners and connections at once.
func (s *Server) Close() error { return s.http.Close() }

// fromPod lets only clients with a loopback address through.
func fromPod(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().Unmap().IsLoopback() {
			http.Error(w, "only for processes of the pod", http.StatusForbidden)
			return
		}
		h(w, r)
	}
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.options.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// application runs the probe that the kubelet requests, and answers with its status.
func (s *Server) application(w http.ResponseWriter, r *http.Request) {
	p := s.options.Probes[r.URL.Path]
	if p == nil {
		http.Error(w, "no probe of this path", http.StatusNotFound)
		return
	}
	header := r.Header.Clone()
	header.Del("Connection")
	answer, err := s.options.Asker.Ask(r.Context(), p, header)
	if err != nil && answer.Status == 0 {
		answer = probe.Answer{Status: http.StatusInternalServerError}
	}
	if err != nil {
		s.options.Log.Debug("the application is not well", "probe", r.URL.Path, "error", err)
		if answer.Body == nil {
			answer.Body = fmt.Appendf(nil, "%v\n", err)
		}
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
}

func (s *Server) quit(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprintln(w, "OK")
	s.options.Log.Info("asked to end", "path", "/quitquitquit")
	s.options.Quit()
}

func (s *Server) drain(w http.ResponseWriter, r *http.Request) {
	s.options.Log.Info("asked to drain", "path", "/drain")
	if err := s.options.Drain(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintln(w, "OK")
}

func (s *Server) names(w http.ResponseWriter, _ *http.Request) {
	if s.options.Names == nil {
		http.Error(w, "no DNS proxy runs here", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.options.Names())
}
