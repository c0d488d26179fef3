package main

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// memoryLimit is how much memory this process may use: what GOMEMLIMIT says, or the cgroup's limit, or what the machine has. Zero is unknown.
func memoryLimit() int64 {
	if soft := debug.SetMemoryLimit(-1); soft != math.MaxInt64 {
		return soft
	}
	limit := machineMemory("/proc/meminfo")
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n := numberIn(file); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// numberIn is the number that a file holds; zero when there is none, or "max".
func numberIn(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// machineMemory is MemTotal of a file like /proc/meminfo.
func machineMemory(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// openFiles is how many file descriptors this process may have; zero is unknown.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Cur
}

// tcpMemory is how many bytes of memory the kernel lets TCP have before it begins to be sparing; zero is unknown. The file has three numbers
// of pages, of which that is the first.
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
	// underwayShare is the share of answers to proxies that connect. What they share counts once for each of them, so that much less is used.
	underwayShare = 16
	// tcpShare is their share of the kernel's memory for TCP: what a client has not read lies in sockets, here twice as large and on loopback on
	// both sides.
	tcpShare = 4
	// heldShare is the share of all that waits to be written, counted in the same way.
	heldShare = 4
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

func ownResources() resources {
	return resources{memoryLimit(), tcpMemory("/proc/sys/net/ipv4/tcp_mem"), openFiles()}
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
	if r.files > 2*spareFiles {
		o.maxConnections = int(min(r.files-spareFiles, math.MaxInt32))
	}
	if r.memory > 0 {
		o.maxStreams = min(o.maxStreams, int(max(r.memory/streamCost, 1)))
	}
}
