package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// crowd is a mesh whose namespaces would each have encoded bytes of their own, if nothing were shared and nothing gave way: 300 sidecars of it
// that connected at once made pilotd take 280 MiB under such a limit.
const crowd = `about: Many namespaces.
seed: 1
namespaces: 100
services: 500
pods: 2
tcp: 0.1
virtualServices: 0.2
destinationRules: 0.2
`

// TestStormUnderAMemoryLimit: sidecars that all connect at once get everything, pilotd stays below its limit, and it is not killed.
func TestStormUnderAMemoryLimit(t *testing.T) {
	const limit = 192 << 20
	testnet.New(t)
	shape, mesh := filepath.Join(t.TempDir(), "crowd.yaml"), t.TempDir()
	if err := os.WriteFile(shape, []byte(crowd), 0o600); err != nil {
		t.Fatal(err)
	}
	parts.LoadTest(t, "populate", "--quiet", "--shape="+shape, mesh)
	ceiling := parts.NewCeiling(t, limit)
	pilotd := parts.StartPilotd(t, parts.Sources{ConfigDir: mesh, Memory: ceiling})

	file := filepath.Join(t.TempDir(), "report.json")
	parts.LoadTest(t, "run", "--quiet", "--dir="+mesh, "--target="+pilotd.Address(), "--clients=300", "--dialing=0", "--out="+file,
		"--scenario=endpoint", "--changes=2", "--patience=90s")
	var report struct {
		Phases []struct {
			Name    string
			Missing int
			Latency struct{ Samples int }
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
		t.Errorf("%+v", report)
	}
	for _, p := range report.Phases {
		if p.Missing > 0 || p.Latency.Samples < 300 {
			t.Errorf("%+v", p)
		}
	}
	if err := pilotd.Alive(); err != nil || ceiling.Killed() > 0 {
		t.Errorf("killed %d times: %v", ceiling.Killed(), err)
	}
	peak := pilotd.PeakMemory()
	t.Logf("at most %d MiB resident, %d MiB by the cgroup's count, of %d", peak>>20, ceiling.Peak()>>20, limit>>20)
	if peak > limit {
		t.Errorf("%d MiB were resident, the limit is %d", peak>>20, limit>>20)
	}
}
