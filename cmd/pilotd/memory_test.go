package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestLimits(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name                    string
		given                   options
		memory                  int64
		files                   uint64
		streams, underway, held int
	}{
		{"a small pod", options{maxStreams: 100_000}, gib, 1 << 20, 16384, gib / 16, gib / 4},
		{"a tiny pod", options{maxStreams: 100_000}, 40 << 20, 1 << 20, 640, leastUnderway, leastUnderway},
		{"few files", options{maxStreams: 100_000}, 64 * gib, 20_000, 20_000 - spareFiles, 4 * gib, 16 * gib},
		{"fewer asked for", options{maxStreams: 500}, 64 * gib, 20_000, 500, 4 * gib, 16 * gib},
		{"told otherwise", options{maxStreams: 500, maxBytesUnderway: 7, maxBytesHeldInAll: 8}, gib, 1 << 20, 500, 7, 8},
		{"nothing is known", options{maxStreams: 500}, 0, 0, 500, 0, 0},
	} {
		o := c.given
		o.limit(c.memory, c.files)
		if o.maxStreams != c.streams || o.maxBytesUnderway != c.underway || o.maxBytesHeldInAll != c.held {
			t.Errorf("%s: %d streams, %d bytes under way, %d held", c.name, o.maxStreams, o.maxBytesUnderway, o.maxBytesHeldInAll)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if n := machineMemory(file("MemFree:  7 kB\nMemTotal:       24000 kB\n")); n != 24000<<10 {
		t.Error("MemTotal:", n)
	}
	if a, b, c := numberIn(file("12345\n")), numberIn(file("max\n")), numberIn("/nowhere"); a != 12345 || b != 0 || c != 0 {
		t.Error("numbers:", a, b, c)
	}
	old := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(old)
	if n := memoryLimit(); n != 1<<30 {
		t.Error("GOMEMLIMIT:", n)
	}
}
