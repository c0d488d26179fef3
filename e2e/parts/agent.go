package parts

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// AgentSpec describes an agent and its pod.
type AgentSpec struct {
	Kind     ProxyKind
	Workload Workload
	// Account is the pod's service account.
	Account string
	// Token returns the pod's token; Roots are the mesh's root certificates.
	Token func() string
	Roots string
	// Config is added, as YAML, to the pod's ProxyConfig, which says where pilotd and Envoy are.
	Config map[string]any
	// Env is added to the environment that injection writes.
	Env []string
	// Files are further files of the container, by their path.
	Files map[string]string
}

// Agent is a running pilot-agent and the Envoy that it has started.
type Agent struct {
	*Process
	// Immutable after StartAgent. Dir is its working directory, which stands for the root of its container.
	Dir  string
	t    testing.TB
	spec AgentSpec
	pod  *testnet.Pod
	// restart restarts the container of an injected pod; preStop runs its hook, nil if it has none.
	restart func()
	preStop func() error
}

// StartAgent starts an agent in the pod, with the files, environment and arguments of the container that injection
// makes.
func StartAgent(t testing.TB, pod *testnet.Pod, spec AgentSpec) *Agent {
	t.Helper()
	a := &Agent{t: t, spec: spec, pod: pod, Dir: t.TempDir()}
	labels := ""
	for name, value := range spec.Workload.Labels {
		labels += fmt.Sprintf("%s=%q\n", name, value)
	}
	a.WriteFile("etc/istio/pod/labels", labels)
	a.WriteFile("etc/istio/pod/annotations", "istio.io/rev=\"default\"\n")
	a.WriteFile("var/run/secrets/istio/root-cert.pem", spec.Roots)
	a.WriteFile("var/run/secrets/tokens/istio-token", spec.Token())
	for name, text := range spec.Files {
		a.WriteFile(name, text)
	}
	a.Start()
	return a
}

// WriteFile writes a file of the agent's container.
func (a *Agent) WriteFile(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		a.t.Fatal(err)
	}
}

// Start starts the agent (again).
func (a *Agent) Start() {
	a.t.Helper()
	w := a.spec.Workload
	config := map[string]any{"discoveryAddress": testnet.Host + ":15012", "binaryPath": program(a.t, "ENVOY"),
		"concurrency": 1, "terminationDrainDuration": "1s"}
	for name, value := range a.spec.Config {
		config[name] = value
	}
	text, err := json.Marshal(config)
	if err != nil {
		a.t.Fatal(err)
	}
	cmd := a.Command("proxy", string(a.spec.Kind), "--domain", w.Namespace+".svc.cluster.local",
		"--proxyLogLevel=warning", "--proxyComponentLogLevel=misc:error", "--log_output_level=default:debug")
	cmd.Env = append([]string{"POD_NAME=" + w.Name, "POD_NAMESPACE=" + w.Namespace, "INSTANCE_IP=" + w.IP,
		"SERVICE_ACCOUNT=" + a.spec.Account, "PILOT_CERT_PROVIDER=istiod", "PROXY_CONFIG=" + string(text),
		// The pod has no cluster DNS: it reaches pilotd by address, and ISTIOD_SAN is the name in pilotd's certificate.
		"ISTIOD_SAN=istiod.istio-system.svc", "ISTIO_META_CLUSTER_ID=Kubernetes", "ISTIO_META_INTERCEPTION_MODE=REDIRECT",
		"ISTIO_META_MESH_ID=cluster.local", "TRUST_DOMAIN=cluster.local"}, a.spec.Env...)
	a.Process = startProcess(a.t, launch{name: "agent-" + w.Name, cmd: cmd, start: a.pod.Start})
}

// Command returns a command of the agent's program, in its container.
func (a *Agent) Command(args ...string) *exec.Cmd {
	a.t.Helper()
	cmd := exec.Command(program(a.t, "AGENT"), args...)
	cmd.Dir = a.Dir
	return cmd
}

// Request sends a request to Envoy's admin page with the agent's own command, inside the pod.
func (a *Agent) Request(args ...string) (string, error) {
	a.t.Helper()
	var out strings.Builder
	cmd := a.Command(append([]string{"request"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := a.pod.Start(cmd); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out.String())
	}
	return out.String(), nil
}

// Page reads a page on a port of the pod from outside, as the kubelet and Prometheus do.
func (a *Agent) Page(port int, path string) (string, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return getBy(client, fmt.Sprintf("http://%s%s", net.JoinHostPort(a.spec.Workload.IP, strconv.Itoa(port)), path))
}

// Ready returns nil if the pod's readiness probe succeeds.
func (a *Agent) Ready() error {
	_, err := a.Page(15021, "/healthz/ready")
	return err
}

// AwaitReady waits until the pod is ready.
func (a *Agent) AwaitReady() {
	a.t.Helper()
	Eventually(a.t, a.name+" is ready", func() error {
		if err := a.Alive(); err != nil {
			a.t.Fatal(err)
		}
		return a.Ready()
	})
}

// Pid returns the agent's process id.
func (a *Agent) Pid() int { return a.cmd.Process.Pid }

// Restart starts the container of an injected pod again in the same directory, as a kubelet does after it has exited.
func (a *Agent) Restart() {
	a.t.Helper()
	_ = a.Ended()
	a.restart()
}

// PreStop runs the preStop hook of an injected proxy, as a kubelet does before it sends SIGTERM.
func (a *Agent) PreStop() {
	a.t.Helper()
	if a.preStop == nil {
		a.t.Fatalf("%s has no hook for its end", a.name)
	}
	if err := a.preStop(); err != nil {
		a.t.Fatal(err)
	}
}

// KillEnvoy kills the agent's Envoy, as a crash would.
func (a *Agent) KillEnvoy() {
	a.t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		a.t.Fatal(err)
	}
	for _, path := range stats {
		// format: pid (name) state parent …
		_, after, _ := strings.Cut(readText(path), ") ")
		if fields := strings.Fields(after); len(fields) < 2 || fields[1] != strconv.Itoa(a.Pid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			a.t.Fatal(err)
		}
		return
	}
	a.t.Fatalf("%s has no Envoy", a.name)
}

// Ended waits until the agent has exited, and returns its error.
func (a *Agent) Ended() error {
	a.t.Helper()
	select {
	case <-a.ended:
		return a.err
	case <-time.After(patience):
		a.t.Fatalf("%s has not ended", a.name)
		return nil
	}
}

// Terminate sends SIGTERM, as the kubelet does, without waiting.
func (a *Agent) Terminate() { _ = a.cmd.Process.Signal(syscall.SIGTERM) }
