package parts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// Names of the containers that injection adds.
const (
	captureContainer = "istio-init"
	proxyContainer   = "istio-proxy"
)

// Injected is a pod as an injector made it, and what a kubelet knows in addition.
type Injected struct {
	Pod *corev1.Pod
	// Token returns the pod's token; Roots are the mesh's root certificates.
	Token func() string
	Roots string
}

// ProxyUID is the user id of the proxy in an injected pod.
const ProxyUID = 1337

// StartInjected does with the containers that injection added what a kubelet does: it runs the init container and
// starts the proxy, each with its arguments, environment, volumes and user. The test runs the application itself.
func StartInjected(t testing.TB, in *testnet.Pod, of Injected) *Agent {
	t.Helper()
	a := &Agent{t: t, pod: in, Dir: t.TempDir(),
		spec: AgentSpec{Workload: Workload{Name: of.Pod.Name, Namespace: of.Pod.Namespace, IP: in.IP}}}
	k := kubelet{a, of}
	for i := range of.Pod.Spec.InitContainers {
		switch c := &of.Pod.Spec.InitContainers[i]; {
		case c.Name == captureContainer:
			if err := k.run(c); err != nil {
				t.Fatal(err)
			}
		case c.Name == proxyContainer && c.RestartPolicy != nil:
			k.startProxy(c)
			a.AwaitReady() // the next container starts once the startup probe has succeeded
			return a
		}
	}
	for i := range of.Pod.Spec.Containers {
		if c := &of.Pod.Spec.Containers[i]; c.Name == proxyContainer {
			k.startProxy(c)
			return a
		}
	}
	t.Fatalf("pod %s has no container %s", of.Pod.Name, proxyContainer)
	return nil
}

// kubelet starts the containers of a pod.
type kubelet struct {
	*Agent
	of Injected
}

// command returns the command of a container, to run as its user.
func (k kubelet) command(c *corev1.Container) *exec.Cmd {
	k.t.Helper()
	env := k.env(c)
	cmd := k.Command()
	cmd.Path = reachable(k.t, cmd.Path)
	for _, arg := range c.Args {
		for _, v := range env {
			name, value, _ := strings.Cut(v, "=")
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		cmd.Args = append(cmd.Args, arg)
	}
	cmd.Env = env
	s := c.SecurityContext
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(*s.RunAsUser),
		Gid: uint32(*s.RunAsGroup)}}
	return cmd
}

// RunInit runs an init container that injection added, and returns its error.
func RunInit(t testing.TB, in *testnet.Pod, of Injected, name string) error {
	t.Helper()
	k := kubelet{&Agent{t: t, pod: in, Dir: t.TempDir()}, of}
	k.mayEnter()
	for i := range of.Pod.Spec.InitContainers {
		if c := &of.Pod.Spec.InitContainers[i]; c.Name == name {
			return k.run(c)
		}
	}
	t.Fatalf("pod %s has no container %s", of.Pod.Name, name)
	return nil
}

// run runs a container to its end.
func (k kubelet) run(c *corev1.Container) error {
	k.t.Helper()
	var out strings.Builder
	cmd := k.command(c)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := k.pod.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", c.Name, c.Args, err, out.String())
	}
	return nil
}

// mayEnter lets every user reach the container's directory, which is inside the test's private one.
func (k kubelet) mayEnter() {
	k.t.Helper()
	if err := os.Chmod(filepath.Dir(k.Dir), 0o755); err != nil {
		k.t.Fatal(err)
	}
}

// startProxy starts the proxy's container so that it can be restarted.
func (k kubelet) startProxy(c *corev1.Container) {
	k.t.Helper()
	k.mountAll(c)
	k.restart = func() { k.startContainer(c) }
	if l := c.Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Exec != nil {
		k.preStop = func() error {
			hook := c.DeepCopy()
			hook.Args = l.PreStop.Exec.Command[1:] // the first word is the program in the image
			return k.run(hook)
		}
	}
	k.restart()
}

func (k kubelet) startContainer(c *corev1.Container) {
	k.t.Helper()
	k.Process = startProcess(k.t, launch{name: "agent-" + k.of.Pod.Name, cmd: k.command(c), start: k.pod.Start})
}

// mountAll creates a container's directory, owned by its user.
func (k kubelet) mountAll(c *corev1.Container) {
	k.t.Helper()
	volumes := map[string]*corev1.Volume{}
	for i := range k.of.Pod.Spec.Volumes {
		volumes[k.of.Pod.Spec.Volumes[i].Name] = &k.of.Pod.Spec.Volumes[i]
	}
	for _, m := range c.VolumeMounts {
		k.mount(m.MountPath, volumes[m.Name])
	}
	k.mayEnter()
	if err := filepath.Walk(k.Dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(*c.SecurityContext.RunAsUser), int(*c.SecurityContext.RunAsGroup))
	}); err != nil {
		k.t.Fatal(err)
	}
}

// mount creates the files of a volume in the container's directory.
func (k kubelet) mount(at string, v *corev1.Volume) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Join(k.Dir, at), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if v == nil {
		k.t.Fatalf("no volume for %s", at)
	}
	switch {
	case v.DownwardAPI != nil:
		for _, item := range v.DownwardAPI.Items {
			of := k.of.Pod.Labels
			if item.FieldRef.FieldPath == "metadata.annotations" {
				of = k.of.Pod.Annotations
			}
			text := ""
			for name, value := range of {
				text += fmt.Sprintf("%s=%q\n", name, value)
			}
			k.WriteFile(filepath.Join(at, item.Path), text)
		}
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				k.WriteFile(filepath.Join(at, source.ServiceAccountToken.Path), k.of.Token())
			}
		}
	case v.ConfigMap != nil && v.ConfigMap.Name == "istio-ca-root-cert":
		k.WriteFile(filepath.Join(at, "root-cert.pem"), k.of.Roots)
	}
}

// env returns a container's environment, with what the kubelet fills in.
func (k kubelet) env(c *corev1.Container) (out []string) {
	fields := map[string]string{"metadata.name": k.of.Pod.Name, "metadata.namespace": k.of.Pod.Namespace,
		"status.podIP": k.pod.IP, "status.hostIP": testnet.Host, "spec.nodeName": "n1",
		"spec.serviceAccountName": k.of.Pod.Spec.ServiceAccountName}
	for _, v := range c.Env {
		value := v.Value
		if from := v.ValueFrom; from != nil && from.FieldRef != nil {
			value = fields[from.FieldRef.FieldPath]
		} else if from != nil && from.ResourceFieldRef != nil {
			limit := c.Resources.Limits[corev1.ResourceName(strings.TrimPrefix(from.ResourceFieldRef.Resource, "limits."))]
			value = fmt.Sprint(limit.Value())
		}
		out = append(out, v.Name+"="+value)
	}
	return out
}

// reachable returns a copy of a program in a place that every user can reach.
func reachable(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(os.TempDir(), fmt.Sprintf("pilotd-e2e-%d-%s", os.Getpid(), filepath.Base(path)))
	if _, err := os.Stat(to); err == nil {
		return to
	}
	t.Cleanup(func() { _ = os.Remove(to) })
	if os.Link(path, to) == nil {
		return to
	}
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	copied, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(copied, from)
		err = errors.Join(err, copied.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// EnvoyBinary returns the path of an Envoy that every user can run.
func EnvoyBinary(t testing.TB) string { return reachable(t, program(t, "ENVOY")) }
