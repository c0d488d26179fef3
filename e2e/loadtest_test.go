package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// TestLoadTestInACluster does what docs/loadtest.md says: it fills an API server with a
// mesh, lets pilotd read it, and edits it there while that mesh's proxies watch. Nothing
// is left of the edits after it, nor of the mesh in the end.
func TestLoadTestInACluster(t *testing.T) {
	testnet.New(t)
	api := parts.StartAPIServer(t)
	server := "--kubeconfig=" + api.Kubeconfig
	populate := func(args ...string) string {
		return parts.LoadTest(t, append([]string{"populate", "--quiet", server}, args...)...)
	}
	populate("--shape=everything")
	pilotd := parts.StartPilotd(t, parts.Sources{Kubeconfig: api.Kubeconfig})

	file := filepath.Join(t.TempDir(), "report.json")
	parts.LoadTest(t, "run", "--quiet", server, "--target="+pilotd.Address(), "--clients=sidecar=40,gateway=4",
		"--out="+file,
		"--scenario=endpoint,route,routes,rolling", "--changes=2")
	var report struct {
		Phases []struct {
			Name             string
			Changes, Missing int
			Latency          struct{ Samples int }
			Types            map[string]struct{ Messages, Useless int }
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
	var names []string
	for _, p := range report.Phases {
		names = append(names, p.Name)
		if p.Missing > 0 || p.Latency.Samples == 0 || p.Name != "connect" && p.Changes < 2 {
			t.Errorf("%+v", p)
		}
		for of, count := range p.Types {
			if count.Useless > 0 {
				t.Errorf("%s: %d useless resources of %s", p.Name, count.Useless, of)
			}
		}
	}
	if got := strings.Join(names, " "); got != "connect endpoint route routes rolling" || report.Ended > 0 {
		t.Errorf("%s, %d streams ended", got, report.Ended)
	}
	if said := populate("--shape=everything"); !strings.Contains(said, " 0 objects written") ||
		!strings.Contains(said, " 0 removed") {
		t.Error("something is left of the edits: ", said)
	}
	if said := populate("--delete"); !strings.Contains(said, "0 objects written, 0 kept") {
		t.Error(said)
	}
	if said := populate("--delete"); !strings.Contains(said, " 0 removed") {
		t.Error("something is left of the mesh: ", said)
	}
}
