package startup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/xdstype"
)

// TestStartUp starts pilotd beside an API server that holds a mesh, twice. The first
// answer to a client has everything in it. STARTUP_SERVICES, STARTUP_PODS (of each
// service) and STARTUP_RUNS change the size: the log then has the figures of
// docs/benchmarks.md.
func TestStartUp(t *testing.T) {
	m := mesh.New(shape(number(t, "STARTUP_SERVICES", 100), number(t, "STARTUP_PODS", 3)))
	api := parts.StartAPIServer(t)
	parts.NewBareCluster(t, api).InstallCRDs()
	began := time.Now()
	size := fill(t, api.Etcd, m)
	t.Logf("%d services and %d pods of %d bytes written in %v", m.Services, m.Workloads(), size,
		time.Since(began).Round(time.Millisecond))
	for range 2 { // The server's caches fill.
		took, bytes := bareRead(t, api.Kubeconfig)
		t.Logf("bare reader: %v for %.1f MB", took.Round(time.Millisecond), float64(bytes)/1e6)
	}
	for run := range number(t, "STARTUP_RUNS", 2) {
		p := start(t, api.Kubeconfig)
		becomes := p.ready()
		got, ready := p.client(m), <-becomes
		if ready == 0 {
			t.Fatal("pilotd is not ready")
		}
		first := p.usage()
		complete(t, p, m, got)
		later := p.usage()
		p.stop()
		t.Logf(
			"run %d: ready %v, first clusters %v, all %v; CPU %v; memory then %s, peak %s; with a second client %s, CPU %v",
			run+1,
			ready.Round(
				time.Millisecond,
			),
			got.clusters.Round(time.Millisecond),
			got.complete.Round(time.Millisecond),
			first.CPU,
			mega(first.Resident),
			mega(first.Peak),
			mega(later.Resident),
			later.CPU,
		)
	}
}

// complete checks what the client got: for every service a cluster for each port, and its endpoints.
func complete(t *testing.T, p *pilotd, m *mesh.Mesh, got answers) {
	t.Helper()
	if n := got.resources[xdstype.Cluster]; n < int64(m.Services) {
		t.Errorf("%d clusters of %d services", n, m.Services)
	}
	if n := got.resources[xdstype.Endpoint]; n < int64(m.Services) {
		t.Errorf("%d endpoint sets of %d services", n, m.Services)
	}
	node := m.Node(0)
	id := strings.Split(node.Id, "~")
	name, namespace, _ := strings.Cut(id[2], ".")
	dump := parts.Fetch(t, p.xds, parts.Sidecar, parts.Workload{Name: name, Namespace: namespace, IP: id[1],
		Labels: m.Pod(0).Labels}, nil)
	endpoints := map[string]int{}
	for _, e := range dump.Endpoints {
		for _, l := range e.Endpoints {
			endpoints[e.ClusterName] += len(l.LbEndpoints)
		}
	}
	for s := range m.Services {
		if name := "outbound|80||" + m.Host(s); endpoints[name] != m.Pods {
			t.Fatalf("%s has %d endpoints, want %d", name, endpoints[name], m.Pods)
		}
	}
}

func mega(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

func number(t *testing.T, env string, otherwise int) int {
	v := os.Getenv(env)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s=%q: %v", env, v, err)
	}
	return n
}
