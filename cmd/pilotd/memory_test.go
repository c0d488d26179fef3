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
		name                                 string
		given                                options
		has                                  resources
		streams, connections, underway, held int
	}{
		{"a small pod", options{maxStreams: 100_000}, resources{gib, 4 * gib, 1 << 20}, 16384, 1<<20 - spareFiles, gib / 16, gib / 4},
		{"a tiny pod", options{maxStreams: 100_000}, resources{40 << 20, 4 << 20, 1 << 20}, 640, 1<<20 - spareFiles, leastUnderway, leastUnderway},
		{"few files", options{maxStreams: 100_000}, resources{64 * gib, 0, 20_000}, 100_000, 20_000 - spareFiles, 4 * gib, 16 * gib},
		{"little for TCP", options{maxStreams: 100_000}, resources{64 * gib, gib, 20_000}, 100_000, 20_000 - spareFiles, gib / 4, 16 * gib},
		{"fewer asked for", options{maxStreams: 500}, resources{64 * gib, 64 * gib, 0}, 500, 0, 4 * gib, 16 * gib},
		{"told otherwise", options{maxStreams: 500, maxBytesUnderway: 7, maxBytesHeldInAll: 8}, resources{gib, gib, 1 << 20}, 500, 1<<20 - spareFiles, 7, 8},
		{"nothing is known", options{maxStreams: 500}, resources{}, 500, 0, 0, 0},
	} {
		o := c.given
		o.limit(c.has)
		if o.maxStreams != c.streams || o.maxConnections != c.connections || o.maxBytesUnderway != c.underway || o.maxBytesHeldInAll != c.held {
			t.Errorf("%s: %d streams, %d connections, %d bytes under way, %d held", c.name, o.maxStreams, o.maxConnections, o.maxBytesUnderway, o.maxBytesHeldInAll)
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
	if n := tcpMemory(file("10\t20\t30\n")); n != int64(10*os.Getpagesize()) || tcpMemory(file("")) != 0 {
		t.Error("memory of TCP:", n)
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
