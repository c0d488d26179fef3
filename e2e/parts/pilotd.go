package parts

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// Ports of pilotd in the test network. Its address is testnet.Host.
const (
	xdsPort        = 15010
	securePort     = 15012
	httpPort       = 8080
	monitoringPort = 15014
)

// Pilotd is pilotd as users run it: a process with flags.
type Pilotd struct {
	// Immutable after StartPilotd.
	t    testing.TB
	args []string
	env  []string
	mesh string   // path of the file with the mesh configuration
	cap  *Ceiling // limit of its memory; may be nil
	// replica is added to each of its port numbers.
	replica int

	// Owned by the test's goroutine.
	process *Process
}

// Sources says what pilotd reads, and how it is started.
type Sources struct {
	// ConfigDir is a directory of YAML; empty for none.
	ConfigDir string
	// Kubeconfig is the kubeconfig of a cluster; empty for none.
	Kubeconfig string
	// MeshConfig is the mesh configuration as text; empty leaves it to the other sources.
	MeshConfig string
	// Flags are more flags, Env more environment variables.
	Flags, Env []string
	// Memory limits its memory; nil for no limit.
	Memory *Ceiling
	// Unready starts it without waiting until it is ready.
	Unready bool
	// Replica is added to each port number except those in Flags, to run a second pilotd beside the first.
	Replica int
}

// StartPilotd starts pilotd on those sources and waits until it is ready.
func StartPilotd(t testing.TB, s Sources) *Pilotd {
	t.Helper()
	p := &Pilotd{t: t, cap: s.Memory, env: s.Env, replica: s.Replica, args: []string{
		"discovery",
		fmt.Sprintf("--grpcAddr=%s:%d", testnet.Host, xdsPort+s.Replica),
		fmt.Sprintf("--httpAddr=%s:%d", testnet.Host, httpPort+s.Replica),
		fmt.Sprintf("--monitoringAddr=127.0.0.1:%d", monitoringPort+s.Replica),
		"--secureGRPCAddr=", "--httpsAddr=",
		// Streams end over this time; the default is meant for fleets.
		"--shutdownDuration=1s",
	}}
	if s.ConfigDir != "" {
		p.args = append(p.args, "--configDir="+s.ConfigDir)
	}
	if s.Kubeconfig != "" {
		p.args = append(p.args, "--registries=Kubernetes", "--kubeconfig="+s.Kubeconfig)
	} else {
		p.args = append(p.args, "--registries=")
	}
	if s.MeshConfig != "" {
		p.mesh = filepath.Join(t.TempDir(), "mesh")
		p.SetMeshConfig(s.MeshConfig)
		p.args = append(p.args, "--meshConfig="+p.mesh)
	}
	p.args = append(p.args, s.Flags...)
	p.launch()
	if !s.Unready {
		p.AwaitReady()
	}
	return p
}

// SetMeshConfig replaces the mesh configuration.
func (p *Pilotd) SetMeshConfig(text string) {
	p.t.Helper()
	if err := os.WriteFile(p.mesh+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.mesh+".new", p.mesh); err != nil {
		p.t.Fatal(err)
	}
}

// pilotdHost is the name in the certificate that pilotd serves.
const pilotdHost = "istiod.istio-system.svc"

// SecureAddress returns the address of xDS over TLS, which needs the flags of Authority.Serve.
func (p *Pilotd) SecureAddress() string { return fmt.Sprintf("%s:%d", testnet.Host, securePort) }

// Address returns the address of xDS in plain text.
func (p *Pilotd) Address() string { return fmt.Sprintf("%s:%d", testnet.Host, xdsPort+p.replica) }

// Start starts the process (again) and waits until it is ready.
func (p *Pilotd) Start() {
	p.t.Helper()
	p.launch()
	p.AwaitReady()
}

func (p *Pilotd) launch() {
	p.t.Helper()
	cmd := exec.Command(program(p.t, "PILOTD"), p.args...)
	if p.cap != nil {
		cmd = p.cap.command(cmd.Path, p.args...)
	}
	cmd.Env = append(os.Environ(), p.env...)
	p.process = startProcess(p.t, launch{name: "pilotd", cmd: cmd})
}

// AwaitReady waits until it is ready.
func (p *Pilotd) AwaitReady() {
	p.t.Helper()
	Eventually(p.t, "pilotd is ready", func() error {
		if err := p.process.Alive(); err != nil {
			p.t.Fatal(err)
		}
		return p.Ready()
	})
}

// Ready returns nil if it is ready, else what it waits for.
func (p *Pilotd) Ready() error {
	_, err := get(fmt.Sprintf("http://%s:%d/ready", testnet.Host, httpPort+p.replica))
	return err
}

// Kill kills the process, as a crash would.
func (p *Pilotd) Kill() { p.process.Kill() }

// Stop ends the process with SIGTERM, as Kubernetes does.
func (p *Pilotd) Stop() { p.process.Stop() }

// Alive returns nil while the process that was started last runs.
func (p *Pilotd) Alive() error { return p.process.Alive() }

// PeakMemory returns the largest resident memory of the process, in bytes, including file pages and shared memory.
func (p *Pilotd) PeakMemory() int64 {
	p.t.Helper()
	peak := number(readText(fmt.Sprintf("/proc/%d/status", p.process.cmd.Process.Pid)), "VmHWM:") << 10
	if peak == 0 {
		p.t.Fatalf("what pilotd's memory was at most is not known; it runs: %v", p.process.Alive() == nil)
	}
	return peak
}

// LogTail returns at most the last n bytes in the log of the process that was started last.
func (p *Pilotd) LogTail(n int) string { return p.process.LogTail(n) }

// Debug reads a page of the monitoring port, such as "/debug/syncz".
func (p *Pilotd) Debug(path string) (string, error) {
	return get(fmt.Sprintf("http://127.0.0.1:%d%s", monitoringPort+p.replica, path))
}

// get reads a page. Any status except 200 is an error.
func get(url string) (string, error) { return getBy(http.DefaultClient, url) }

func getBy(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %.300s", url, resp.Status, body)
	}
	return string(body), nil
}
