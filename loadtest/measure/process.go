package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Process is the operating system's account of a process.
type Process struct {
	// CPU is the user and system time since its start.
	CPU time.Duration `json:"cpuNanoseconds"`
	// Resident is its memory in bytes, Peak its largest so far.
	Resident int64 `json:"residentBytes"`
	Peak     int64 `json:"peakBytes,omitempty"`
	// Heap is the part of it that is Go's heap, if the process reports it.
	Heap int64 `json:"heapBytes,omitempty"`
}

// tick is the unit of CPU times in /proc, the same on all Linux systems that Go runs on.
const tick = 10 * time.Millisecond

// Read reads the account of a process from /proc.
func Read(pid int) (Process, error) {
	var p Process
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	if p.CPU, err = cpuOf(stat); err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return p, err
	}
	p.Resident, p.Peak = kilobytes(status, "VmRSS:"), kilobytes(status, "VmHWM:")
	return p, nil
}

// cpuOf returns user and system time, the 14th and 15th field. The second field, in parentheses, may contain anything.
func cpuOf(stat []byte) (time.Duration, error) {
	i := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[i+1:]))
	if i < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("stat has %d fields", len(fields))
	}
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

func kilobytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}
