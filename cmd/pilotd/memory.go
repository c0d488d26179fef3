package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/pilotd/pilotd/shard"
)

// memoryLimits say how much memory this process may use.
type memoryLimits struct {
	// all is what the whole process may use, and from says whose limit that is; zero is unknown.
	all  int64
	from string
	// collector is what the collector keeps the memory below that it manages, and what all that gives way to memory
	// goes by: less than all, for the pages of the program itself, sockets and the kernel's tables count too. told
	// reports whether the collector is to be told.
	collector int64
	told      bool
}

// memoryGiven is what there is to say about the memory of this process; zero is nothing.
type memoryGiven struct {
	env     int64 // GOMEMLIMIT
	cgroup  int64 // the smallest limit of the cgroup and those above it
	machine int64
	pages   int64 // of the program and other files, that are in memory
}

// readMemory reads what there is to say. The cgroup's limit is found in version 1 and 2, wherever they are mounted.
func readMemory() memoryGiven {
	g := memoryGiven{pages: filePages("/proc/self/statm")}
	if soft := debug.SetMemoryLimit(-1); soft != math.MaxInt64 {
		g.env = soft
	}
	g.cgroup = limitOf(memlimit.FromCgroup)
	g.machine = limitOf(memlimit.FromSystem)
	return g
}

// limitOf returns what a provider says; zero when it has no limit, or cannot be read, which is no reason not to serve.
func limitOf(p memlimit.Provider) int64 {
	n, err := p()
	if err != nil || n > math.MaxInt64 {
		return 0
	}
	return int64(n)
}

const (
	// overrunShare is the share of the whole process's limit that the collector stays below it for its own sake: it
	// works at most half of the time, so in a storm of requests, on busy processors, what it manages grows beyond what
	// it was told before it is done.
	overrunShare = 5
	// overrunPages are pages of files that may come into memory until the collector is told anew.
	overrunPages = 4 << 20
	// retell is how much the collector's limit has to change before it is told: that stops the world for a moment.
	retell = 1 << 20
)

// now returns g with the pages of files that are in memory now. The program's own pages come as its code is used for
// the first time.
func (g memoryGiven) now() memoryGiven {
	g.pages = filePages("/proc/self/statm")
	return g
}

// limits returns those that follow. The cgroup's limit is where the kernel ends the process; GOMEMLIMIT, where it
// stands alone, is taken for the limit of the whole process too, as the charts of istiod set it. The collector stays
// below either by room for its overrun and for the pages of files. A GOMEMLIMIT that asks for less is obeyed as it is.
// Without any limit the collector is told nothing.
func (g memoryGiven) limits() memoryLimits {
	room := func(all int64) int64 { return max(all-all/overrunShare-g.pages-overrunPages, all/2) }
	switch {
	case g.cgroup > 0 && (g.machine == 0 || g.cgroup <= g.machine):
		l := memoryLimits{all: g.cgroup, from: "cgroup", collector: room(g.cgroup), told: true}
		if g.env > 0 && g.env < l.collector {
			l.collector, l.from = g.env, "cgroup, GOMEMLIMIT"
		}
		return l
	case g.env > 0:
		return memoryLimits{all: g.env, from: "GOMEMLIMIT", collector: room(g.env), told: true}
	case g.machine > 0:
		return memoryLimits{all: g.machine, from: "machine", collector: room(g.machine)}
	}
	return memoryLimits{}
}

// tell tells the collector its limit, unless that is nearly what it was told before.
func (l memoryLimits) tell() {
	if before := debug.SetMemoryLimit(-1); l.told && (l.collector-before >= retell || before-l.collector >= retell) {
		debug.SetMemoryLimit(l.collector)
	}
}

// filePages returns the bytes of files, the program's own first of all, that a process has in memory: the third number
// of a file like /proc/self/statm.
func filePages(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 3 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// watchMemory gives read a reading now and after each collection, which alone finds out what is in use, until ctx ends.
// It asks for the limits each time, and tells the collector where they have changed.
func watchMemory(ctx context.Context, limits func() memoryLimits, read func(shard.Memory)) {
	collected := make(chan struct{}, 1)
	notify(ctx, collected)
	for {
		l := limits()
		l.tell()
		read(shard.Memory{Live: liveMemory(), Limit: l.collector})
		select {
		case <-ctx.Done():
			return
		case <-collected:
		}
	}
}

// notify sends to collected after each collection, until ctx ends: it lets go of an object, and hears when that is
// found to be gone.
func notify(ctx context.Context, collected chan<- struct{}) {
	runtime.AddCleanup(&sentinel{}, func(struct{}) {
		if ctx.Err() != nil {
			return
		}
		select {
		case collected <- struct{}{}:
		default:
		}
		notify(ctx, collected)
	}, struct{}{})
}

// sentinel is an object with a pointer, which the runtime allocates by itself and not as a part of another one.
type sentinel struct{ _ *sentinel }

// liveMemory returns the bytes that the last collection found in use, with what the runtime needs besides: stacks and
// its own tables.
func liveMemory() int64 {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/metadata/mcache/inuse:bytes"}, {Name: "/memory/classes/metadata/mspan/inuse:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"}, {Name: "/memory/classes/other:bytes"},
		{Name: "/memory/classes/profiling/buckets:bytes"},
	}
	metrics.Read(samples)
	var live uint64
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			live += s.Value.Uint64()
		}
	}
	return int64(min(live, math.MaxInt64))
}

// openFiles returns how many file descriptors this process may have; zero is unknown.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Cur
}

// tcpMemory returns how many bytes of memory the kernel lets TCP have before it begins to be sparing; zero is unknown.
// The file has three numbers of pages, of which that is the first.
func tcpMemory(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) == 0 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// What follows from the memory limit.
const (
	// underwayShare is the share of answers to proxies that connect. What they share counts once for each of them, so
	// that much less is used.
	underwayShare = 16
	// tcpShare is their share of the kernel's memory for TCP: what a client has not read lies in sockets, here twice as
	// large and on loopback on both sides.
	tcpShare = 4
	// heldShare is the share of all that waits to be written, counted in the same way.
	heldShare = 4
	// namedShare is the share of all that clients name: their subscriptions, and the versions that they come back with.
	namedShare = 8
	// receivedShare is the share of large requests that are being received, which is counted twice: as it comes, and
	// whole to be read. leastReceived is enough for one request of the usual limit and many of the size that Envoys
	// send, mostReceived for whatever comes.
	receivedShare = 16
	leastReceived = 8 << 20
	mostReceived  = 256 << 20
	// leastUnderway is enough for a few proxies of a large mesh, whatever the limit is.
	leastUnderway = 16 << 20
	// streamCost is what a connected proxy costs at least, with its connection and TLS.
	streamCost = 64 << 10
	// spareFiles are left for sources, pages and connections that are refused.
	spareFiles = 256
)

// resources are what there is; zero is unknown.
type resources struct {
	memory int64  // bytes that this process may use
	tcp    int64  // bytes that the kernel lets TCP have
	files  uint64 // descriptors
}

func ownResources(memory int64) resources {
	return resources{memory, tcpMemory("/proc/sys/net/ipv4/tcp_mem"), openFiles()}
}

// limit fills in what follows from what there is.
func (o *options) limit(r resources) {
	if o.maxBytesUnderway == 0 && r.memory > 0 {
		o.maxBytesUnderway = int(max(r.memory/underwayShare, leastUnderway))
		if r.tcp > 0 {
			o.maxBytesUnderway = min(o.maxBytesUnderway, int(max(r.tcp/tcpShare, leastUnderway)))
		}
	}
	if o.maxBytesHeldInAll == 0 && r.memory > 0 {
		o.maxBytesHeldInAll = int(max(r.memory/heldShare, leastUnderway))
	}
	if r.memory > 0 {
		o.maxBytesNamed = int(max(r.memory/namedShare, leastUnderway))
		o.maxBytesReceived = int(min(max(r.memory/receivedShare/2, leastReceived), mostReceived))
	}
	if r.files > 2*spareFiles {
		o.maxConnections = int(min(r.files-spareFiles, math.MaxInt32))
	}
	if r.memory > 0 {
		o.maxStreams = min(o.maxStreams, int(max(r.memory/streamCost, 1)))
	}
	if o.maxOwnStreams == 0 {
		o.maxOwnStreams = max(o.maxStreams-o.maxStreams/4, 1)
	}
}
