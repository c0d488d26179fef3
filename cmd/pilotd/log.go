package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"google.golang.org/grpc/grpclog"
)

// scopeKey is the attribute that names the part of pilotd that logs. Each scope can have its own level.
const scopeKey = "scope"

// maxLogged bounds each logged text, because texts of clients and objects may be very long.
const maxLogged = 4 << 10

// newLog returns a logger that writes text or JSON lines to w. levels is a list of scope:level, with "default" for all
// other scopes; levels are debug, info, warn, error and none. Logging never blocks on w: see logQueue, which the caller
// must close at the end.
func newLog(w io.Writer, levels string, asJSON bool) (*slog.Logger, *logQueue, error) {
	h := &scopedHandler{levels: map[string]slog.Level{"default": slog.LevelInfo}}
	for part := range strings.SplitSeq(levels, ",") {
		scope, level, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok {
			scope, level = "default", scope
		}
		if level == "none" {
			h.levels[scope] = slog.LevelError + 4
			continue
		}
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, nil, fmt.Errorf("--log_output_level=%s: %q: want scope:level with level debug, info, warn, error or none",
				levels, part)
		}
		h.levels[scope] = l
	}
	handler := func(w io.Writer) slog.Handler {
		all := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: bounded}
		if asJSON {
			return slog.NewJSONHandler(w, all)
		}
		return slog.NewTextHandler(w, all)
	}
	queue := newLogQueue(w, func(n int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn("log lines were dropped: they came faster than they could be written, or were too long",
			"lines", n)
		return line.Bytes()
	})
	h.next, h.level = handler(queue), h.levels["default"]
	return slog.New(h), queue, nil
}

// bounded cuts long texts.
func bounded(_ []string, a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	default:
		return a
	}
	if len(text) > maxLogged {
		return slog.String(a.Key, fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxLogged], ""), len(text)))
	}
	return a
}

// routeOtherLogs sends the errors of grpc's own log to log. By itself grpc writes to standard error, and blocks on it.
func routeOtherLogs(log *slog.Logger) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard,
		slog.NewLogLogger(log.With(scopeKey, "grpc").Handler(), slog.LevelError).Writer()))
}

// scopedHandler drops lines below the level of their logger's scope. Immutable.
type scopedHandler struct {
	next   slog.Handler
	levels map[string]slog.Level
	level  slog.Level
}

func (h *scopedHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *scopedHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.next.Handle(ctx, r)
}

func (h *scopedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := &scopedHandler{next: h.next.WithAttrs(attrs), levels: h.levels, level: h.level}
	for _, a := range attrs {
		if l, ok := h.levels[a.Value.String()]; ok && a.Key == scopeKey {
			out.level = l
		}
	}
	return out
}

func (h *scopedHandler) WithGroup(name string) slog.Handler {
	return &scopedHandler{next: h.next.WithGroup(name), levels: h.levels, level: h.level}
}
