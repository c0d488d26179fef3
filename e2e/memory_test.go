package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// crowd is a mesh, and sidecars of it that all connect at once.
type crowd struct{ namespaces, services, sidecars int }

// populate writes the mesh and returns its directory.
func (c crowd) populate(t *testing.T) string {
	t.Helper()
	shape, mesh := filepath.Join(t.TempDir(), "crowd.yaml"), t.TempDir()
	text := fmt.Sprintf("about: Many namespaces.\nseed: 1\nnamespaces: %d\nservices: %d\npods: 2\ntcp: 0.1\n"+
		"virtualServices: 0.2\ndestinationRules: 0.2\n", c.namespaces, c.services)
	if err := os.WriteFile(shape, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	parts.LoadTest(t, "populate", "--quiet", "--shape="+shape, mesh)
	return mesh
}

// connect starts pilotd on the mesh, under a limit of so many bytes or without one, lets the crowd connect, and two
// endpoints change. It returns how long connecting took. All get everything; pilotd stays below its limit, and it is
// not killed.
func (c crowd) connect(t *testing.T, mesh string, limit int64) time.Duration {
	t.Helper()
	testnet.New(t)
	var ceiling *parts.Ceiling
	if limit > 0 {
		ceiling = parts.NewCeiling(t, limit)
	}
	pilotd := parts.StartPilotd(t, parts.Sources{ConfigDir: mesh, Memory: ceiling})
	file := filepath.Join(t.TempDir(), "report.json")
	parts.LoadTest(t, "run", "--quiet", "--dir="+mesh, "--target="+pilotd.Address(),
		fmt.Sprint("--clients=", c.sidecars), "--dialing=0", "--out="+file,
		"--scenario=endpoint", "--changes=2", "--patience=90s")
	var report struct {
		Phases []struct {
			Name        string
			Nanoseconds time.Duration
			Missing     int
			Latency     struct{ Samples int }
		}
		Ended int
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Phases) != 2 || report.Ended > 0 {
		t.Fatalf("%+v", report)
	}
	for _, p := range report.Phases {
		if p.Missing > 0 || p.Latency.Samples < c.sidecars {
			t.Errorf("%+v", p)
		}
	}
	if err := pilotd.Alive(); err != nil {
		t.Error(err)
	}
	peak := pilotd.PeakMemory()
	t.Logf("connecting took %v, at most %d MiB were resident", report.Phases[0].Nanoseconds.Round(time.Millisecond),
		peak>>20)
	if ceiling != nil {
		counted, killed := ceiling.Peak(), ceiling.Killed()
		t.Logf("the cgroup counted at most %d MiB, and %d were killed in it", counted>>20, killed)
		// What counts is what the kernel counts for the limit. Resident memory has the program's own pages too, which
		// are the file cache's; it stands in where no cgroup is.
		if counted == 0 {
			counted = peak
		}
		if margin := limit / 16; counted > limit-margin || killed > 0 {
			t.Errorf("memory came to %d MiB, %d were killed: want %d MiB below the limit of %d MiB, and none",
				counted>>20, killed, margin>>20, limit>>20)
		}
	}
	return report.Phases[0].Nanoseconds
}

// TestStormUnderAMemoryLimit: sidecars of many namespaces that all connect at once get everything, pilotd stays below
// its limit, and it is not killed. If nothing were shared between namespaces and nothing gave way, it would take 280
// MiB.
func TestStormUnderAMemoryLimit(t *testing.T) {
	c := crowd{namespaces: 100, services: 500, sidecars: 300}
	c.connect(t, c.populate(t), 192<<20)
}

// TestStormAtFullSize is the same with 1,000 sidecars, 1,000 services and 256 MiB, in turn without and with the limit,
// which may make connecting take twice as long. It runs where STORM_NAMESPACES says of how many namespaces, as `make
// storm` does, for its times need a machine of its own.
func TestStormAtFullSize(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("STORM_NAMESPACES"))
	if err != nil {
		t.Skip("STORM_NAMESPACES is not a number of namespaces: run it by `make storm`, on a machine that does nothing else")
	}
	c := crowd{namespaces: n, services: 1000, sidecars: 1000}
	mesh := c.populate(t)
	var free, limited time.Duration
	for round := range 3 {
		t.Run(fmt.Sprint("without limit ", round), func(t *testing.T) { free += c.connect(t, mesh, 0) })
		t.Run(fmt.Sprint("with limit ", round), func(t *testing.T) { limited += c.connect(t, mesh, 256<<20) })
	}
	t.Logf("%d namespaces: with the limit connecting takes %.2f times as long", n, float64(limited)/float64(free))
	if limited > 2*free {
		t.Errorf("with the limit connecting took %v, without %v: want at most twice that", limited, free)
	}
}
