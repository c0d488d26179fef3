package status

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// scrapeTime limits a scrape if the client does not say how long it waits.
const scrapeTime = 10 * time.Second

// timeoutHeader is the header in which Prometheus says how long it waits, in seconds.
const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// plainText is the only format in which answers can be joined by writing one after the other.
const plainText = "text/plain; version=0.0.4; charset=utf-8"

// Metrics are the sources of metrics.
type Metrics struct {
	// Agent gathers the agent's own metrics.
	Agent prometheus.Gatherer
	// Failures counts, by source, scrapes that failed.
	Failures *prometheus.CounterVec
	// Application is the URL of the application's metrics. nil means that it has none.
	Application *url.URL
	// Client requests the application's metrics. nil means a client with default settings.
	Client *http.Client
}

// ApplicationPage parses the settings that injection took from the pod's Prometheus annotations. It returns the URL of
// the application's metrics, or nil if they are not to be scraped.
func ApplicationPage(text string, own int) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	var given struct{ Scrape, Path, Port string }
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return nil, err
	}
	if given.Scrape != "true" {
		return nil, nil
	}
	if given.Port == "" {
		given.Port = "80"
	}
	if given.Path == "" {
		given.Path = "/metrics"
	}
	port, err := strconv.ParseUint(given.Port, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("port %q: want a number from 1 to 65535", given.Port)
	}
	if int(port) == own {
		return nil, fmt.Errorf("port %d is the agent's own", port)
	}
	page, err := url.Parse("/" + strings.TrimPrefix(given.Path, "/"))
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", given.Path, err)
	}
	page.Scheme, page.Host = "http", fmt.Sprintf("localhost:%d", port)
	return page, nil
}

// metrics serves the metrics of Envoy, the agent and the application. A source that fails is left out and counted.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience(r))
	defer cancel()
	w.Header().Set("Content-Type", plainText)
	out := &lines{to: w}
	failed := func(source string, err error) {
		s.options.Metrics.Failures.WithLabelValues(source).Inc()
		s.options.Log.Debug("metrics are missing", "of", source, "error", err)
	}
	if s.options.Admin.URL != "" {
		if err := s.envoyMetrics(ctx, out); err != nil {
			failed("envoy", err)
		}
	}
	if err := s.agentMetrics(out); err != nil {
		failed("agent", err)
	}
	if s.options.Metrics.Application != nil {
		if err := s.applicationMetrics(ctx, out, r); err != nil {
			failed("application", err)
		}
	}
}

// patience returns how long the client waits, less the time that the answer needs to reach it.
func patience(r *http.Request) time.Duration {
	seconds, err := strconv.ParseFloat(r.Header.Get(timeoutHeader), 64)
	if err != nil || seconds <= 0 || seconds > 600 {
		return scrapeTime
	}
	return time.Duration(seconds * 0.95 * float64(time.Second))
}

func (s *Server) envoyMetrics(ctx context.Context, out *lines) error {
	body, err := s.options.Admin.Do(ctx, http.MethodGet, "/stats/prometheus")
	if err != nil {
		return err
	}
	defer body.Close()
	return out.copy(body)
}

func (s *Server) agentMetrics(out *lines) error {
	families, err := s.options.Metrics.Agent.Gather()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return err
		}
	}
	return out.copy(&b)
}

func (s *Server) applicationMetrics(ctx context.Context, out *lines, from *http.Request) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.options.Metrics.Application.String(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", plainText)
	for _, name := range []string{timeoutHeader, "User-Agent"} {
		if v := from.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	client := s.options.Metrics.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", s.options.Metrics.Application, answer.Status)
	}
	return out.copy(answer.Body)
}

// lines joins several answers line by line: it completes a last line that has no newline, and drops the end marker of
// OpenMetrics, after which nothing may follow.
type lines struct {
	to io.Writer
}

func (l *lines) copy(from io.Reader) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadSlice('\n')
		if text := bytes.TrimRight(line, "\r\n"); len(line) > 0 && string(text) != "# EOF" {
			if err == io.EOF {
				line = append(bytes.Clone(line), '\n')
			}
			if _, werr := l.to.Write(line); werr != nil {
				return werr
			}
		}
		switch err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}
