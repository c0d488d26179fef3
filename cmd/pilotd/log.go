package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// scopeKey is the attribute that names the part of pilotd that a line is from; its level can be set apart.
const scopeKey = "scope"

// newLog makes a logger that writes to w, as text or JSON. levels is a list of scope:level; "default" stands for all that are not named.
// Levels are debug, info, warn, error and none.
func newLog(w io.Writer, levels string, asJSON bool) (*slog.Logger, error) {
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
			return nil, fmt.Errorf("--log_output_level=%s: %q: want scope:level with level debug, info, warn, error or none", levels, part)
		}
		h.levels[scope] = l
	}
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	if asJSON {
		h.next = slog.NewJSONHandler(w, all)
	} else {
		h.next = slog.NewTextHandler(w, all)
	}
	h.level = h.levels["default"]
	return slog.New(h), nil
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
