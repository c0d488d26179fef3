package overlay

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"istio.io/api/annotation"
)

// image returns the image of the proxy: an annotation or a value that is a whole path stands for itself; else it is
// that of hub, name, tag and image type.
func (d *Data) image() string {
	if i := d.annotation(annotation.SidecarProxyImage.Name, d.Chart.Global.Proxy.Image); strings.Contains(i, "/") {
		return i
	}
	return d.ProxyImage
}

// captureImage returns the image of the container that captures traffic. Image types are the proxy's alone.
func (d *Data) captureImage() string {
	g := &d.Chart.Global
	if i := d.annotation(annotation.SidecarProxyImage.Name, g.ProxyInit.Image); strings.Contains(i, "/") {
		return i
	}
	return g.Hub + "/" + cmp.Or(g.ProxyInit.Image, "proxyv2") + ":" + string(g.Tag)
}

// resources returns the resources that annotations ask for, if there are any, else those of the values.
func (d *Data) resources() (corev1.ResourceRequirements, error) {
	var out corev1.ResourceRequirements
	some := false
	for _, r := range []struct {
		annotation string
		list       *corev1.ResourceList
		name       corev1.ResourceName
	}{
		{annotation.SidecarProxyCPU.Name, &out.Requests, corev1.ResourceCPU},
		{annotation.SidecarProxyMemory.Name, &out.Requests, corev1.ResourceMemory},
		{annotation.SidecarProxyCPULimit.Name, &out.Limits, corev1.ResourceCPU},
		{annotation.SidecarProxyMemoryLimit.Name, &out.Limits, corev1.ResourceMemory},
	} {
		text, ok := d.ObjectMeta.Annotations[r.annotation]
		if !ok {
			continue
		}
		q, err := resource.ParseQuantity(strings.TrimSpace(text))
		if err != nil {
			return out, fmt.Errorf("annotation %s=%q: expected a quantity such as 100m or 128Mi", r.annotation, text)
		}
		if *r.list == nil {
			*r.list = corev1.ResourceList{}
		}
		(*r.list)[r.name] = q
		some = true
	}
	if some {
		return out, nil
	}
	return *d.Chart.Global.Proxy.Resources.DeepCopy(), nil
}

// logFlags returns the flags that say what Envoy and the agent log.
func (d *Data) logFlags() []string {
	p := &d.Chart.Global.Proxy
	return []string{
		"--proxyLogLevel=" + d.annotation(annotation.SidecarLogLevel.Name, p.LogLevel),
		"--proxyComponentLogLevel=" + d.annotation(annotation.SidecarComponentLogLevel.Name, p.ComponentLogLevel),
		d.agentLogFlag(),
	}
}

func (d *Data) agentLogFlag() string {
	return "--log_output_level=" + d.annotation(annotation.SidecarAgentLogLevel.Name, d.Chart.Global.Logging.Level)
}

// agentArgs returns the arguments of the agent that runs a proxy of a kind.
func (d *Data) agentArgs(kind string) []string {
	g := &d.Chart.Global
	args := append([]string{"proxy", kind, "--domain", "$(POD_NAMESPACE).svc." + g.Proxy.ClusterDomain}, d.logFlags()...)
	if p := g.STS.ServicePort; p != "" && p != "0" && p != "false" {
		args = append(args, "--stsPort="+string(p))
	}
	if g.LogAsJSON {
		args = append(args, "--log_as_json")
	}
	return args
}

// statusPort returns where the agent tells whether the proxy is ready; "0" is nowhere.
func (d *Data) statusPort() string {
	return strings.TrimSpace(d.annotation(annotation.SidecarStatusPort.Name, string(d.Chart.Global.Proxy.StatusPort)))
}

// readiness returns the probe of the proxy at a port, with its timing from annotations or values.
func (d *Data) readiness(port int) (*corev1.Probe, error) {
	p := &d.Chart.Global.Proxy
	out := readyProbe(port)
	for _, f := range []struct {
		annotation string
		to         *int32
		otherwise  int32
	}{
		{annotation.SidecarStatusReadinessInitialDelaySeconds.Name, &out.InitialDelaySeconds, p.ReadinessInitialDelaySeconds},
		{annotation.SidecarStatusReadinessPeriodSeconds.Name, &out.PeriodSeconds, p.ReadinessPeriodSeconds},
		{annotation.SidecarStatusReadinessFailureThreshold.Name, &out.FailureThreshold, p.ReadinessFailureThreshold},
	} {
		*f.to = f.otherwise
		if text, ok := d.ObjectMeta.Annotations[f.annotation]; ok {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("annotation %s=%q: expected a number of at least 0", f.annotation, text)
			}
			*f.to = int32(n)
		}
	}
	return out, nil
}

// readyProbe asks for the proxy's readiness at a port.
func readyProbe(port int) *corev1.Probe {
	return &corev1.Probe{TimeoutSeconds: 3, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt(port)}}}
}

// seccomp returns a seccomp profile, or none where the values have an empty one.
func seccomp(p corev1.SeccompProfile) *corev1.SeccompProfile {
	if reflect.ValueOf(p).IsZero() {
		return nil
	}
	return &p
}

// command returns a lifecycle hook that runs a command.
func command(words ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: words}}
}

func (d *Data) pullSecrets() []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	for _, s := range d.Chart.Global.ImagePullSecrets {
		out = append(out, corev1.LocalObjectReference{Name: s})
	}
	return out
}
