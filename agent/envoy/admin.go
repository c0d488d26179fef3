package envoy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// adminTime is how long a request to the admin page may take.
const adminTime = 5 * time.Second

// maxStats is how many bytes of an answer are read.
const maxStats = 1 << 20

// Admin is a client of Envoy's admin page.
type Admin struct {
	// URL is the address, http://host:port.
	URL string
	// Own are the ports of Envoy's listeners for readiness and metrics.
	Own []uint32
	// Client sends the requests; nil means a client with default settings.
	Client *http.Client
}

// Do requests a page and returns its body, which the caller closes.
func (a Admin) Do(ctx context.Context, method, page string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.URL+page, nil)
	if err != nil {
		return nil, err
	}
	client := a.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("envoy's admin page: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("envoy's admin page %s: %s", page, answer.Status)
	}
	return answer.Body, nil
}

// Stats returns the counters and gauges whose names match a regular expression.
func (a Admin) Stats(ctx context.Context, filter string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	body, err := a.Do(ctx, http.MethodGet, "/stats?usedonly&filter="+filter)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxStats))
	if err != nil {
		return nil, fmt.Errorf("envoy's admin page: %w", err)
	}
	out := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndex(line, ": ")
		if at < 0 {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(line[at+2:]), 10, 64); err == nil {
			out[line[:at]] = n
		}
	}
	return out, nil
}

// post requests a page that changes something.
func (a Admin) post(ctx context.Context, page string) error {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	body, err := a.Do(ctx, http.MethodPost, page)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxStats))
	return body.Close()
}

// Drain tells Envoy to accept no new connections and requests, on inbound listeners alone or on all. Those in progress
// go on.
func (a Admin) Drain(ctx context.Context, inboundOnly bool) error {
	page := "/drain_listeners?graceful&skip_exit"
	if inboundOnly {
		page = "/drain_listeners?inboundonly&graceful&skip_exit"
	}
	return a.post(ctx, page)
}

// Connections returns how many connections of applications are open. Connections to the agent, to the metrics listener
// and to the readiness listener do not count.
func (a Admin) Connections(ctx context.Context) (n uint64, err error) {
	stats, err := a.Stats(ctx, "downstream_cx_active%24")
	if err != nil {
		return 0, err
	}
	for name, value := range stats {
		own := strings.HasPrefix(name, "listener.admin.") || strings.Contains(name, "worker_")
		for _, port := range a.Own {
			port := strconv.Itoa(int(port))
			own = own || strings.HasPrefix(name, "listener.0.0.0.0_"+port+".") ||
				strings.HasPrefix(name, "listener.[__]_"+port+".") ||
				strings.HasPrefix(name, "listener.stats_"+port+".") || strings.HasPrefix(name, "listener.agent_"+port+".")
		}
		if !own && strings.HasPrefix(name, "listener.") {
			n += value
		}
	}
	return n, nil
}
