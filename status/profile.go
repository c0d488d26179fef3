package status

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

// maxProfile bounds the duration of a profile or trace.
const maxProfile = 2 * time.Minute

// profiles serves the profiles of the Go runtime. Those that observe the process for a while (CPU, traces, differences)
// slow it down meanwhile, so only one of them runs at a time, and not for long.
func profiles(mux *http.ServeMux) {
	busy := make(chan struct{}, 1)
	single := func(h http.HandlerFunc, lasts bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seconds, err := duration(r.FormValue("seconds"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if lasts || seconds > 0 {
				select {
				case busy <- struct{}{}:
					defer func() { <-busy }()
				default:
					w.Header().Set("Retry-After", "30")
					http.Error(w, "another profile is being taken: try again when it has ended",
						http.StatusServiceUnavailable)
					return
				}
			}
			h(w, r)
		})
	}
	mux.Handle("GET /debug/pprof/", single(pprof.Index, false))
	mux.Handle("GET /debug/pprof/cmdline", single(pprof.Cmdline, false))
	mux.Handle("GET /debug/pprof/symbol", single(pprof.Symbol, false))
	mux.Handle("GET /debug/pprof/profile", single(pprof.Profile, true))
	mux.Handle("GET /debug/pprof/trace", single(pprof.Trace, true))
}

// duration parses a parameter in seconds; empty means zero.
func duration(parameter string) (time.Duration, error) {
	if parameter == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(parameter, 64)
	if err != nil || !(n >= 0) || n > maxProfile.Seconds() {
		return 0, fmt.Errorf("parameter seconds: want a number up to %v", maxProfile.Seconds())
	}
	return time.Duration(n * float64(time.Second)), nil
}
