package parts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	adminpb "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrappb "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// adminPort is the port of Envoy's admin pages, on the pod's address.
const adminPort = 15000

// ProxyKind is the first part of a node id.
type ProxyKind string

// The kinds of Envoy in a mesh.
const (
	Sidecar ProxyKind = "sidecar"
	Gateway ProxyKind = "router"
)

// Protocol is the variant of xDS that an Envoy uses, as its bootstrap names it.
type Protocol string

// The two variants of ADS.
const (
	Delta Protocol = "DELTA_GRPC"
	SotW  Protocol = "GRPC"
)

// EnvoySpec describes an Envoy.
type EnvoySpec struct {
	Kind     ProxyKind
	Protocol Protocol
	Workload Workload
	// XDS is the address of pilotd, or of a Tap in front of it.
	XDS string
	// Secrets is the authority that signs the pod's certificate.
	Secrets *Authority
	// Secure makes the Envoy connect over TLS, as the service account default of its namespace, with a certificate of
	// the authority.
	Secure bool
	// Metadata is added to the node's own.
	Metadata map[string]any
}

// Envoy is a running upstream Envoy in a pod.
type Envoy struct {
	*Process
	// Immutable after StartEnvoy.
	t     testing.TB
	admin string
}

// StartEnvoy starts an Envoy in the pod; a sidecar captures the pod's traffic. It does not
// wait until the Envoy is ready, which takes an xDS server.
func StartEnvoy(t testing.TB, pod *testnet.Pod, spec EnvoySpec) *Envoy {
	t.Helper()
	if spec.Kind == Sidecar {
		if err := pod.Capture(adminPort); err != nil {
			t.Fatal(err)
		}
	}
	secrets := StartSDS(t, pod, spec.Secrets, spec.Workload)
	config, err := bootstrap(spec, secrets.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Secure {
		secure(t, config, spec)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	writeJSON(t, path, config)
	cmd := exec.Command(program(t, "ENVOY"), "-c", path, "--concurrency", "1", "--disable-hot-restart",
		"--drain-time-s", "1", "--parent-shutdown-time-s", "2", "-l", "warning",
		// Every use of a deprecated field is a warning of misc; istiod's answers have hundreds.
		"--component-log-level", "misc:error")
	return &Envoy{
		Process: startProcess(t, launch{name: "envoy-" + spec.Workload.Name, cmd: cmd, start: pod.Start}),
		t:       t, admin: fmt.Sprintf("http://%s:%d", spec.Workload.IP, adminPort),
	}
}

// AwaitReady waits until every listener and cluster is there and warm.
func (e *Envoy) AwaitReady() {
	e.t.Helper()
	Eventually(e.t, e.name+" is ready", func() error {
		if err := e.Alive(); err != nil {
			e.t.Fatal(err)
		}
		_, err := get(e.admin + "/ready")
		return err
	})
}

// Admin reads a page of the admin port, such as "/clusters".
func (e *Envoy) Admin(path string) (string, error) { return get(e.admin + path) }

// Stats returns the counters and gauges whose names match the expression.
func (e *Envoy) Stats(expression string) (map[string]int, error) {
	page, err := e.Admin("/stats?filter=" + regexp.MustCompile(`[|;&#%+]`).ReplaceAllStringFunc(expression,
		func(s string) string { return fmt.Sprintf("%%%02X", s[0]) }))
	if err != nil {
		return nil, err
	}
	stats := make(map[string]int)
	for line := range strings.Lines(page) {
		at := strings.LastIndex(line, ": ")
		if at < 0 {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(line[at+2:])); err == nil {
			stats[line[:at]] = n
		}
	}
	return stats, nil
}

// NothingRefused returns an error if the Envoy has refused any answer so far.
func (e *Envoy) NothingRefused() error {
	stats, err := e.Stats(`update_rejected$`)
	if err != nil {
		return err
	}
	for _, must := range []string{"cluster_manager.cds.update_rejected", "listener_manager.lds.update_rejected"} {
		if _, ok := stats[must]; !ok {
			return fmt.Errorf("%s has no %s", e.name, must)
		}
	}
	for name, n := range stats {
		if n != 0 {
			return fmt.Errorf("%s: %s = %d", e.name, name, n)
		}
	}
	return nil
}

// Warming returns the names of the clusters that wait for their endpoints.
func (e *Envoy) Warming() ([]string, error) {
	page, err := e.Admin("/config_dump?resource=dynamic_warming_clusters")
	if err != nil {
		return nil, err
	}
	var dump struct {
		Configs []struct {
			Cluster struct {
				Name string `json:"name"`
			} `json:"cluster"`
		} `json:"configs"`
	}
	if err := json.Unmarshal([]byte(page), &dump); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range dump.Configs {
		names = append(names, c.Cluster.Name)
	}
	return names, nil
}

// Extensions returns what this Envoy says in Node.extensions: what it is built with.
func (e *Envoy) Extensions() ([]*corepb.Extension, error) {
	page, err := e.Admin("/config_dump?mask=bootstrap.node.extensions")
	if err != nil {
		return nil, err
	}
	var dump adminpb.ConfigDump
	if err := protojson.Unmarshal([]byte(page), &dump); err != nil {
		return nil, err
	}
	for _, part := range dump.Configs {
		var b adminpb.BootstrapConfigDump
		if part.UnmarshalTo(&b) == nil {
			return b.Bootstrap.Node.Extensions, nil
		}
	}
	return nil, fmt.Errorf("%s shows no bootstrap", e.name)
}

// Validate lets Envoy judge a static configuration, without any traffic.
func Validate(t testing.TB, config *bootstrappb.Bootstrap) error {
	t.Helper()
	data, err := proto.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "static.pb")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program(t, "ENVOY"), "--mode", "validate", "-c", path, "-l", "error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.3000s", err, out)
	}
	return nil
}

func writeJSON(t testing.TB, path string, value any) {
	t.Helper()
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
