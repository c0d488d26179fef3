package status

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Pages are what the server shows. Each page function is asked when its page is requested; nil leaves the page out.
type Pages struct {
	// Ready reports whether the first View is built, and if not, what is missing.
	Ready func() (ready bool, missing string)
	// Debug are the pages below /debug/, by name without the prefix. What they return is written as JSON.
	Debug map[string]Page
	// Version is shown on /version.
	Version string
	// DebugAnywhere answers /debug to clients that are not on this machine too.
	DebugAnywhere bool
}

// Page makes the content of a debug page. An error is shown with status 400.
type Page func(r *http.Request) (any, error)

// Handler serves /ready, /version, /metrics and /debug.
func Handler(m *Metrics, p Pages) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if ok, missing := p.Ready(); !ok {
			http.Error(w, "not ready: "+missing, http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(p.Version + "\n")) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	debug := http.NewServeMux()
	for name, page := range p.Debug {
		debug.HandleFunc("GET /debug/"+name, func(w http.ResponseWriter, r *http.Request) { writePage(w, r, page) })
	}
	debug.HandleFunc("/debug/pprof/", pprof.Index)
	debug.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	debug.HandleFunc("/debug/pprof/profile", pprof.Profile)
	debug.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	debug.HandleFunc("/debug/pprof/trace", pprof.Trace)
	debug.HandleFunc("GET /debug/{$}", func(w http.ResponseWriter, r *http.Request) { writePage(w, r, p.index) })
	debug.HandleFunc("GET /debug", func(w http.ResponseWriter, r *http.Request) { writePage(w, r, p.index) })
	mux.Handle("/debug/", p.guard(debug))
	mux.Handle("/debug", p.guard(debug))
	return mux
}

// index lists the debug pages.
func (p Pages) index(*http.Request) (any, error) {
	names := []string{"/debug/pprof/"}
	for n := range p.Debug {
		names = append(names, "/debug/"+n)
	}
	slices.Sort(names)
	return names, nil
}

// guard lets only clients on this machine through, unless told otherwise.
func (p Pages) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); !p.DebugAnywhere && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "debug pages are for clients on this machine (see --debugAnywhere)", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func writePage(w http.ResponseWriter, r *http.Request, page Page) {
	content, err := page(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(content) // the client went away
}
