package parts

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Ceiling limits the memory of programs: by a cgroup if the test may create one, else by GOMEMLIMIT, which the kernel
// does not enforce.
type Ceiling struct {
	// Immutable after NewCeiling.
	t     testing.TB
	limit int64
	dir   string // of the cgroup; empty if there is none
	v1    bool   // the cgroup is one of version 1
}

// NewCeiling creates a limit in bytes and logs of which kind it is. At the end of the test the programs in the cgroup
// are killed and it is removed.
func NewCeiling(t testing.TB, limit int64) *Ceiling {
	t.Helper()
	c := &Ceiling{t: t, limit: limit}
	for _, place := range memoryCgroups() {
		if c.make(place) {
			t.Logf("the limit of %d MiB is that of the cgroup %s", limit>>20, c.dir)
			return c
		}
	}
	t.Logf("no cgroup can be made here: the limit of %d MiB is a GOMEMLIMIT, and no kernel enforces it", limit>>20)
	return c
}

// cgroupPlace is a directory in which a cgroup might be created.
type cgroupPlace struct {
	dir string
	v1  bool
}

// memoryCgroups returns the cgroups of this process and their parents, of version 2 and version 1, the nearest first.
func memoryCgroups() (out []cgroupPlace) {
	own := map[bool]string{}
	for line := range strings.Lines(readText("/proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0" && f[1] == "":
			own[false] = f[2]
		case strings.Contains(","+f[1]+",", ",memory,"):
			own[true] = f[2]
		}
	}
	for line := range strings.Lines(readText("/proc/self/mountinfo")) {
		fields, rest, _ := strings.Cut(strings.TrimSpace(line), " - ")
		f, kind := strings.Fields(fields), strings.Fields(rest)
		if len(f) < 5 || len(kind) < 3 {
			continue
		}
		v1 := kind[0] == "cgroup" && strings.Contains(","+kind[2]+",", ",memory,")
		path, ok := own[v1]
		if !ok || !v1 && kind[0] != "cgroup2" {
			continue
		}
		inside, err := filepath.Rel(f[3], path)
		if err != nil || strings.HasPrefix(inside, "..") {
			inside = "."
		}
		for ; ; inside = filepath.Dir(inside) {
			out = append(out, cgroupPlace{filepath.Join(f[4], inside), v1})
			if inside == "." {
				break
			}
		}
	}
	return out
}

// make tries to create a cgroup with the limit in a place. It reports whether this process can put others into it.
func (c *Ceiling) make(p cgroupPlace) bool {
	c.dir, c.v1 = filepath.Join(p.dir, fmt.Sprintf("pilotd-e2e-%d", os.Getpid())), p.v1
	if os.Mkdir(c.dir, 0o755) != nil {
		c.dir = ""
		return false
	}
	limit, swap, none := "memory.max", "memory.swap.max", "0"
	if c.v1 { // in version 1 the second limit is for memory and swap together
		limit, swap, none = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.FormatInt(c.limit, 10)
	}
	if c.write(limit, strconv.FormatInt(c.limit, 10)) != nil || !c.holds() {
		_ = os.Remove(c.dir)
		c.dir = ""
		return false
	}
	_ = c.write(swap, none) // a machine without swap has no such file
	c.t.Cleanup(func() {
		Eventually(c.t, "the cgroup is gone", func() error { return os.Remove(c.dir) })
	})
	return true
}

// holds reports whether a process can be put into the cgroup.
func (c *Ceiling) holds() bool {
	return c.command("/bin/sh", "-c", "exit 0").Run() == nil
}

func (c *Ceiling) write(name, text string) error {
	return os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644)
}

// command returns a command that runs under the limit from its first instruction.
func (c *Ceiling) command(path string, args ...string) *exec.Cmd {
	if c.dir == "" {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", c.limit))
		return cmd
	}
	in := []string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(c.dir, "cgroup.procs"), path}
	return exec.Command("/bin/sh", append(in, args...)...)
}

// Killed returns the number of programs that the kernel has killed for exceeding the limit.
func (c *Ceiling) Killed() int {
	file := "memory.events"
	if c.v1 {
		file = "memory.oom_control"
	}
	if c.dir == "" {
		return 0
	}
	return int(number(readText(filepath.Join(c.dir, file)), "oom_kill"))
}

// Peak returns the largest memory, in bytes, that the kernel has counted for the cgroup; zero if it is unknown.
func (c *Ceiling) Peak() int64 {
	file := "memory.peak"
	if c.v1 {
		file = "memory.max_usage_in_bytes"
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(readText(filepath.Join(c.dir, file))), 10, 64)
	return n
}

// readText returns the content of a file; empty if it cannot be read.
func readText(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

// number returns the number after a word at the beginning of a line.
func number(text, word string) int64 {
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) > 1 && f[0] == word {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}
