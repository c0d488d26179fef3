package inject

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"istio.io/api/annotation"

	"github.com/pilotd/pilotd/inject/overlay"
)

// defaultStatusPort is where agents listen unless the mesh says otherwise.
const defaultStatusPort = 15020

// envProbers tells the agent what to ask of the application when the kubelet asks at which path.
const envProbers = "ISTIO_KUBE_APP_PROBERS"

// prober is one probe of the application, as the agent reads it.
type prober struct {
	HTTPGet        *corev1.HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket      *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC           *corev1.GRPCAction      `json:"grpc,omitempty"`
	TimeoutSeconds int32                   `json:"timeoutSeconds,omitempty"`
}

// statusPort returns the agent's port in the mesh.
func (in *Injector) statusPort() int32 {
	if p := in.settings.Mesh.GetDefaultConfig().GetStatusPort(); p != 0 {
		return p
	}
	return defaultStatusPort
}

// rewriteProbes sends the kubelet's probes to the agent, which asks the application: with mutual TLS the kubelet cannot
// ask it itself. An agent that does not listen (port 0) gets none.
func (i *injection) rewriteProbes() error {
	proxy := proxyOf(i.pod)
	if proxy == nil || !i.rewrites() {
		return nil
	}
	agent := i.statusPort()
	if text, ok := i.pod.Annotations[annotation.SidecarStatusPort.Name]; ok {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || n == 0 {
			return nil
		}
		agent = int32(n)
	}
	r := rewriting{agent: agent, captured: capturedPorts(i.pod.Annotations), found: map[string]prober{}}
	for n := range i.pod.Spec.Containers {
		r.container(&i.pod.Spec.Containers[n])
	}
	for n := range i.pod.Spec.InitContainers {
		if c := &i.pod.Spec.InitContainers[n]; c.RestartPolicy != nil &&
			*c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			r.container(c)
		}
	}
	if len(r.found) == 0 {
		return nil
	}
	return setProbers(proxy, r.found, i.before != nil)
}

func (i *injection) rewrites() bool {
	if yes, err := strconv.ParseBool(i.pod.Annotations[annotation.SidecarRewriteAppHTTPProbers.Name]); err == nil {
		return yes
	}
	return i.chart.Webhook.RewriteAppHTTPProbe
}

// setProbers hands the probes to the agent. Those of an earlier injection stay, for their probes are rewritten already.
func setProbers(proxy *corev1.Container, found map[string]prober, again bool) error {
	at := -1
	for n := range proxy.Env {
		if again && proxy.Env[n].Name == envProbers {
			at = n
		}
	}
	all := map[string]prober{}
	if at >= 0 {
		// A value that is no JSON is of no use to the agent either.
		_ = json.Unmarshal([]byte(proxy.Env[at].Value), &all)
	}
	maps.Copy(all, found)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if at < 0 {
		proxy.Env = append(proxy.Env, corev1.EnvVar{Name: envProbers, Value: string(text)})
	} else {
		proxy.Env[at].Value = string(text)
	}
	return nil
}

// rewriting goes through the probes of a pod.
type rewriting struct {
	agent    int32
	captured func(port int32) bool
	found    map[string]prober
}

func (r *rewriting) container(c *corev1.Container) {
	if c.Name == overlay.ProxyContainer {
		return
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	health := "/app-health/" + c.Name
	for _, p := range []struct {
		probe *corev1.Probe
		path  string
	}{
		{c.ReadinessProbe, health + "/readyz"}, {c.LivenessProbe, health + "/livez"},
		{c.StartupProbe, health + "/startupz"},
	} {
		if p.probe == nil {
			continue
		}
		asked := prober{HTTPGet: p.probe.HTTPGet, TCPSocket: p.probe.TCPSocket, GRPC: p.probe.GRPC,
			TimeoutSeconds: p.probe.TimeoutSeconds}
		if get := r.take(p.path, asked, ports); get != nil {
			p.probe.ProbeHandler = corev1.ProbeHandler{HTTPGet: get}
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []struct {
		handler *corev1.LifecycleHandler
		path    string
	}{{c.Lifecycle.PreStop, "prestopz"}, {c.Lifecycle.PostStart, "poststartz"}} {
		if h.handler == nil {
			continue
		}
		asked := prober{HTTPGet: h.handler.HTTPGet, TCPSocket: h.handler.TCPSocket}
		if get := r.take("/app-lifecycle/"+c.Name+"/"+h.path, asked, ports); get != nil {
			*h.handler = corev1.LifecycleHandler{HTTPGet: get}
		}
	}
}

// take writes down what the application is asked and answers with what the kubelet asks instead; nil leaves the probe
// as it is: it runs a command, asks the agent or a port that is not captured, or names a port that the container does
// not have.
func (r *rewriting) take(path string, asked prober, ports map[string]int32) *corev1.HTTPGetAction {
	get := &corev1.HTTPGetAction{}
	if h := asked.HTTPGet; h != nil && h.Path == path && (asked.TCPSocket != nil || asked.GRPC != nil) {
		asked.HTTPGet = nil // of an earlier injection; a template has put its own probe beside it again
	}
	switch {
	case asked.HTTPGet != nil:
		asked.HTTPGet = asked.HTTPGet.DeepCopy()
		if !r.resolve(&asked.HTTPGet.Port, ports) {
			return nil
		}
		get = asked.HTTPGet.DeepCopy()
		if get.Scheme == corev1.URISchemeHTTPS {
			get.Scheme = corev1.URISchemeHTTP
		}
	case asked.TCPSocket != nil:
		asked.TCPSocket = asked.TCPSocket.DeepCopy()
		if !r.resolve(&asked.TCPSocket.Port, ports) {
			return nil
		}
	case asked.GRPC == nil || !r.captured(asked.GRPC.Port):
		return nil
	}
	r.found[path] = asked
	get.Path, get.Port = path, intstr.FromInt32(r.agent)
	return get
}

// resolve makes a port a number; false if it has none, is the agent's own, or is one that the kubelet reaches anyway.
func (r *rewriting) resolve(port *intstr.IntOrString, ports map[string]int32) bool {
	if port.Type == intstr.String {
		n, ok := ports[port.StrVal]
		if !ok {
			parsed, err := strconv.ParseInt(port.StrVal, 10, 32)
			n, ok = int32(parsed), err == nil
		}
		*port = intstr.FromInt32(n)
		return ok && r.captured(n)
	}
	return port.IntVal != r.agent && r.captured(port.IntVal)
}

// capturedPorts tells of which ports annotations leave inbound traffic to the proxy: of those that are included, or of
// all but those that are excluded.
func capturedPorts(annotations map[string]string) func(port int32) bool {
	included := annotations[annotation.SidecarTrafficIncludeInboundPorts.Name]
	if included != "" && included != "*" {
		listed := portSet(included)
		return func(port int32) bool { return listed[port] }
	}
	listed := portSet(annotations[annotation.SidecarTrafficExcludeInboundPorts.Name])
	return func(port int32) bool { return !listed[port] }
}

func portSet(list string) map[int32]bool {
	out := map[int32]bool{}
	for p := range strings.SplitSeq(list, ",") {
		if n, err := strconv.ParseUint(strings.TrimSpace(p), 10, 16); err == nil {
			out[int32(n)] = true
		}
	}
	return out
}
