package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/pilotd/pilotd/shard"
)

func TestLimits(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name                                 string
		given                                options
		has                                  resources
		streams, connections, underway, held int
	}{
		{"a small pod", options{maxStreams: 100_000}, resources{gib, 4 * gib, 1 << 20}, 16384, 1<<20 - spareFiles,
			gib / 16, gib / 4},
		{"a tiny pod", options{maxStreams: 100_000}, resources{40 << 20, 4 << 20, 1 << 20}, 640, 1<<20 - spareFiles,
			leastUnderway, leastUnderway},
		{"few files", options{maxStreams: 100_000}, resources{64 * gib, 0, 20_000}, 100_000, 20_000 - spareFiles,
			4 * gib, 16 * gib},
		{"little for TCP", options{maxStreams: 100_000}, resources{64 * gib, gib, 20_000}, 100_000, 20_000 - spareFiles,
			gib / 4, 16 * gib},
		{"fewer asked for", options{maxStreams: 500}, resources{64 * gib, 64 * gib, 0}, 500, 0, 4 * gib, 16 * gib},
		{"told otherwise", options{maxStreams: 500, maxBytesUnderway: 7, maxBytesHeldInAll: 8},
			resources{gib, gib, 1 << 20}, 500, 1<<20 - spareFiles, 7, 8},
		{"nothing is known", options{maxStreams: 500}, resources{}, 500, 0, 0, 0},
	} {
		o := c.given
		o.limit(c.has)
		if o.maxStreams != c.streams || o.maxConnections != c.connections || o.maxBytesUnderway != c.underway ||
			o.maxBytesHeldInAll != c.held {
			t.Errorf("%s: %d streams, %d connections, %d bytes under way, %d held", c.name, o.maxStreams,
				o.maxConnections, o.maxBytesUnderway, o.maxBytesHeldInAll)
		}
	}
}

// TestMemoryLimits: whose limit counts, and what the collector is told.
func TestMemoryLimits(t *testing.T) {
	const mib, gib = int64(1) << 20, int64(1) << 30
	for _, c := range []struct {
		name string
		has  memoryGiven
		want memoryLimits
	}{
		{"a pod", memoryGiven{cgroup: 256 * mib, machine: 64 * gib, pages: 40 * mib},
			memoryLimits{256 * mib, "cgroup", 256*mib - 256*mib/5 - 44*mib, true}},
		{"a large pod", memoryGiven{cgroup: 10 * gib, machine: 64 * gib},
			memoryLimits{10 * gib, "cgroup", 8*gib - 4*mib, true}},
		{"a pod as charts of istiod make it", memoryGiven{env: 10 * gib, cgroup: 10 * gib, machine: 64 * gib},
			memoryLimits{10 * gib, "cgroup", 8*gib - 4*mib, true}},
		{"a pod that asks for less", memoryGiven{env: gib, cgroup: 10 * gib, machine: 64 * gib},
			memoryLimits{10 * gib, "cgroup, GOMEMLIMIT", gib, true}},
		{"GOMEMLIMIT alone", memoryGiven{env: 200 * mib, machine: 64 * gib, pages: 40 * mib},
			memoryLimits{200 * mib, "GOMEMLIMIT", (200 - 40 - 44) * mib, true}},
		{"a tiny pod", memoryGiven{cgroup: 64 * mib, machine: gib, pages: 40 * mib},
			memoryLimits{64 * mib, "cgroup", 32 * mib, true}},
		{"a cgroup above the machine", memoryGiven{cgroup: 64 * gib, machine: 10 * gib},
			memoryLimits{10 * gib, "machine", 8*gib - 4*mib, false}},
		{"a machine", memoryGiven{machine: 10 * gib}, memoryLimits{10 * gib, "machine", 8*gib - 4*mib, false}},
		{"nothing is known", memoryGiven{}, memoryLimits{}},
	} {
		if got := c.has.limits(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestWhatTheKernelSays(t *testing.T) {
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if n := tcpMemory(file("10\t20\t30\n")); n != int64(10*os.Getpagesize()) || tcpMemory(file("")) != 0 {
		t.Error("memory of TCP:", n)
	}
	if n := filePages(file("900 300 20 5 0 80 0\n")); n != int64(20*os.Getpagesize()) || filePages(file("1 2")) != 0 ||
		filePages("/nowhere") != 0 {
		t.Error("pages of files:", n)
	}
	old := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(old)
	if g := readMemory(); g.env != 1<<40 || g.machine <= 0 || g.pages <= 0 {
		t.Errorf("%+v", g)
	}
}

// TestMemoryIsReadAfterEachCollection: a reading comes with every collection, and tells of what it found.
func TestMemoryIsReadAfterEachCollection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	readings := make(chan shard.Memory, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchMemory(ctx, func() memoryLimits { return memoryLimits{collector: 7} }, func(m shard.Memory) {
			select {
			case <-readings: // only the newest counts
			default:
			}
			readings <- m
		})
	}()
	<-readings
	held := make([]byte, 64<<20)
	for found := false; !found; {
		runtime.GC()
		m := <-readings
		found = m.Live >= 64<<20 && m.Limit == 7
	}
	runtime.KeepAlive(held)
	for found := false; !found; {
		runtime.GC()
		m := <-readings
		found = m.Live < 64<<20
	}
	cancel()
	runtime.GC()
	<-done
}
