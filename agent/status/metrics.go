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

// scrapeTime is how long metrics may take where the client does not say how long it waits.
const scrapeTime = 10 * time.Second

// timeoutHeader is how Prometheus says how long it waits.
const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// plainText is the only form that can be put together by writing one answer behind the other.
const plainText = "text/plain; version=0.0.4; charset=utf-8"

// Metrics are where metrics come from.
type Metrics struct {
	// Agent has the agent's own.
	Agent prometheus.Gatherer
	// Failures counts, by source, what was not there when it was asked for.
	Failures *prometheus.CounterVec
	// Application is the application's page; nil if it has none.
	Application *url.URL
	// Client asks the application; nil means one without settings.
	Client *http.Client
}

// ApplicationPage reads what injection has found in Prometheus' annotations: where the application has metrics; nil if
// it is not to be scraped.
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

// metrics answers with those of Envoy, the agent and the application. What one of them does not answer is left out, and
// counted.
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

// patience is how long the client waits, less what the answer needs to reach it.
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

// lines writes several answers behind each other, line by line: the last line of one may have no end, and one in
// OpenMetrics says where it ends, behind which nothing may stand.
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
