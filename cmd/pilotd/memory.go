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
	// all is the limit of the whole process, and from says where it comes from; zero means unknown.
	all  int64
	from string
	// collector is the memory limit of Go's garbage collector. Everything that is refused or freed when memory is short
	// goes by it, too. It is lower than all, because the program's own pages, sockets and kernel tables count towards
	// all. told says whether to set the collector's limit to it.
	collector int64
	told      bool
}

// memoryGiven holds the facts that memoryLimits are computed from; zero means unknown.
type memoryGiven struct {
	env     int64 // GOMEMLIMIT
	cgroup  int64 // the smallest limit of the cgroup and its parents
	machine int64
	pages   int64 // bytes of files in memory, above all the program's own
}

// readMemory reads the facts. It finds the limits of cgroups version 1 and 2, wherever they are mounted.
func readMemory() memoryGiven {
	g := memoryGiven{pages: filePages("/proc/self/statm")}
	if soft := debug.SetMemoryLimit(-1); soft != math.MaxInt64 {
		g.env = soft
	}
	g.cgroup = limitOf(memlimit.FromCgroup)
	g.machine = limitOf(memlimit.FromSystem)
	return g
}

// limitOf returns a provider's limit; zero if there is none, or if it cannot be read, which is no reason to refuse to
// serve.
func limitOf(p memlimit.Provider) int64 {
	n, err := p()
	if err != nil || n > math.MaxInt64 {
		return 0
	}
	return int64(n)
}

const (
	// overrunShare is the share of the process's limit that is kept free because the collector overruns its limit: it
	// may use half of the time at most, so in a storm of requests on busy processors the heap grows beyond the limit
	// before a collection ends.
	overrunShare = 5
	// overrunPages is room for file pages that come into memory before the collector's limit is next set.
	overrunPages = 4 << 20
	// retell is the smallest change for which the collector's limit is set again, because setting it stops the world
	// for a moment.
	retell = 1 << 20
)

// now returns g with the present number of file pages, which grows as code of the program is used for the first time.
func (g memoryGiven) now() memoryGiven {
	g.pages = filePages("/proc/self/statm")
	return g
}

// limits computes the limits. At the cgroup's limit the kernel kills the process. A GOMEMLIMIT without a cgroup limit
// is taken as the limit of the whole process, because istiod's charts set it that way. The collector's limit is lower
// than either, by room for its overrun and for file pages. A GOMEMLIMIT that is lower still is used as it is. Without
// any limit the collector's limit is not set.
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

// tell sets the collector's limit, unless it is nearly what was set before.
func (l memoryLimits) tell() {
	if before := debug.SetMemoryLimit(-1); l.told && (l.collector-before >= retell || before-l.collector >= retell) {
		debug.SetMemoryLimit(l.collector)
	}
}

// filePages returns the bytes of files that a process has in memory, from the third number of a file such as
// /proc/self/statm.
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

// watchMemory calls read with a reading now and after each collection, because only a collection finds out what is in
// use. Each time it also computes the limits, and sets the collector's if they have changed. It returns when ctx ends.
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

// notify sends to collected after each garbage collection, until ctx ends. It notices a collection by the cleanup of an
// unreferenced object.
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

// sentinel is an object that contains a pointer, so that the runtime does not allocate it together with others.
type sentinel struct{ _ *sentinel }

// liveMemory returns the bytes that the last collection found in use, plus what the runtime needs: stacks and its own
// tables.
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

// openFiles returns how many file descriptors this process may have; zero means unknown.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Cur
}

// tcpMemory returns the bytes of memory that the kernel gives TCP before it starts to save; zero means unknown. The
// file has three numbers of pages, of which this is the first.
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

// Shares of the memory limit.
const (
	// underwayShare is the share for answers to connecting proxies. Parts that several answers share count once for
	// each, so the real use is much lower.
	underwayShare = 16
	// tcpShare is the share of the kernel's TCP memory for those answers. Unread data is in sockets, which use twice
	// its size here, and on loopback on both sides.
	tcpShare = 4
	// heldShare is the share for all unwritten responses, counted in the same way.
	heldShare = 4
	// namedShare is the share for all names that clients send: their subscriptions, and the versions with which they
	// reconnect.
	namedShare = 8
	// receivedShare is the share for large requests while they are received. They count twice: in parts as they arrive,
	// and as a whole to be decoded. leastReceived is enough for one request at the usual limit and many of the size
	// that Envoys send; mostReceived is enough for anything.
	receivedShare = 16
	leastReceived = 8 << 20
	mostReceived  = 256 << 20
	// leastUnderway is enough for a few proxies of a large mesh, whatever the limit.
	leastUnderway = 16 << 20
	// streamCost is the least that a connected proxy costs, with its connection and TLS.
	streamCost = 64 << 10
	// spareFiles are descriptors left for sources, pages and connections that are refused.
	spareFiles = 256
)

// resources are what the machine gives this process; zero means unknown.
type resources struct {
	memory int64  // bytes that this process may use
	tcp    int64  // bytes that the kernel gives TCP
	files  uint64 // number of file descriptors
}

func ownResources(memory int64) resources {
	return resources{memory, tcpMemory("/proc/sys/net/ipv4/tcp_mem"), openFiles()}
}

// limit computes the settings that depend on resources, where no flag sets them.
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
