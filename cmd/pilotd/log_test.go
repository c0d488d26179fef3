package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a writer that takes nothing until it is opened.
type gate struct {
	open chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	got bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(p)
}

// lines returns the lines that were written, decoded.
func (g *gate) lines(t *testing.T) (out []map[string]any) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range strings.Lines(g.got.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatalf("%v: %.200s", err, l)
		}
		out = append(out, line)
	}
	return out
}

// A log that nobody reads stops nobody who logs, holds a bounded number of bytes, and says in the end how much is
// missing.
func TestLogNeverWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &gate{open: make(chan struct{})}
		log, queue, err := newLog(to, "default:info", true)
		if err != nil {
			t.Fatal(err)
		}
		const lines = 2000
		for i := range lines {
			log.Info("a line", "number", i, "text", strings.Repeat("x", 4000))
		}
		if queue.size > maxQueuedLog {
			t.Errorf("%d bytes wait", queue.size)
		}
		close(to.open)
		synctest.Wait()
		queue.close(time.Second)
		written, told, next := 0, 0, 0
		for _, l := range to.lines(t) {
			if l["level"] == "WARN" { // one for each time that the writer looked, however early that was
				told += int(l["lines"].(float64))
				continue
			}
			number := int(l["number"].(float64))
			if number < next {
				t.Fatalf("line %d comes after line %d", number, next-1)
			}
			next = number + 1
			written++
		}
		if dropped := queue.Dropped(); written != lines-dropped || told != dropped || dropped == 0 {
			t.Errorf("%d lines of %d are written, %d were dropped, %d are said to be", written, lines, dropped, told)
		}
	})
}

// A log that cannot be written does not keep the process from ending.
func TestLogDoesNotDelayTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &gate{open: make(chan struct{})}
		log, queue, err := newLog(to, "default:info", false)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("stuck")
		synctest.Wait()
		begin := time.Now()
		if queue.close(time.Second); time.Since(begin) != time.Second {
			t.Error("the end took", time.Since(begin))
		}
		close(to.open)
	})
}

// What waits is written in the end, and long texts are cut off.
func TestLogIsWrittenInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &gate{open: make(chan struct{})}
		close(to.open)
		log, queue, err := newLog(to, "default:info", true)
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("é", 100_000)
		log.With("of", long).Info(long, "text", long, "error", errors.New(long), "short", "s", "other", fmt.Sprint(1))
		queue.close(time.Second)
		got := to.lines(t)
		if len(got) != 1 {
			t.Fatal(got)
		}
		for _, key := range []string{"msg", "of", "text", "error"} {
			if text := got[0][key].(string); len(text) > maxLogged+30 || !strings.HasSuffix(text, "é… (200000 bytes)") {
				t.Errorf("%s has %d bytes", key, len(text))
			}
		}
		if got[0]["short"] != "s" {
			t.Error(got[0])
		}
	})
}
