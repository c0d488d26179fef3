package status

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Pages are the contents that the server serves. Each function is called when its page is requested; nil leaves the
// page out.
type Pages struct {
	// Ready reports whether the first View has been built, and if not, what is missing.
	Ready func() (ready bool, missing string)
	// Debug are the pages below /debug/, by name without that prefix. Their results are written as JSON.
	Debug map[string]Page
	// Version is shown on /version.
	Version string
	// Access says who may read /debug.
	Access Access
	// Log receives a line when a page panics; nil means slog.Default().
	Log *slog.Logger
}

// Page returns the content of a debug page. An error is answered with status 400.
type Page func(r *http.Request) (any, error)

// Handler serves /ready, /version, /metrics and /debug. A page that panics is answered with 500, and the process
// continues.
func Handler(m *Metrics, p Pages) http.Handler {
	if p.Log == nil {
		p.Log = slog.Default()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if ok, missing := p.Ready(); !ok {
			http.Error(w, "not ready: "+missing, http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(p.Version + "\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	debug := p.debug()
	mux.Handle("GET /debug/", debug)
	mux.Handle("GET /debug", debug)
	return &containment{next: mux, log: p.Log, count: m.PagePanics, logged: map[string]bool{}}
}

// debug serves the pages below /debug to clients that may read them.
func (p Pages) debug() http.Handler {
	mux, turns := http.NewServeMux(), make(turns, pagesAtOnce)
	for name, page := range p.Debug {
		mux.Handle("GET /debug/"+name, turns.page(page))
	}
	mux.Handle("GET /debug/{$}", turns.page(p.index))
	mux.Handle("GET /debug", turns.page(p.index))
	profiles(mux)
	return p.Access.guard(mux)
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
