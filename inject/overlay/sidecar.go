package overlay

import (
	"cmp"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

// sidecar returns the proxy beside an application, with the capture of the pod's traffic.
func sidecar(d *Data) (*corev1.Pod, error) {
	proxy, err := d.sidecarContainer()
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	pod.Labels = d.canonical()
	pod.Labels[label.SecurityTlsMode.Name] = cmp.Or(d.ObjectMeta.Labels[label.SecurityTlsMode.Name], "istio")
	if d.ProxyConfig.GetProxyMetadata()["ISTIO_META_ENABLE_HBONE"] == "true" {
		pod.Labels[tunnelLabel] = cmp.Or(d.ObjectMeta.Labels[tunnelLabel], "http")
	}
	pod.Annotations = d.annotations()
	d.captureAnnotations(pod.Annotations)
	if d.interception() != modeNone {
		capture, err := d.captureContainer()
		if err != nil {
			return nil, err
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, *capture)
	}
	if d.nativeSidecar() {
		proxy.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, *proxy)
	} else {
		pod.Spec.Containers = []corev1.Container{*proxy}
	}
	pod.Spec.Volumes, err = d.sidecarVolumes()
	pod.Spec.ImagePullSecrets = d.pullSecrets()
	return pod, err
}

// tunnelLabel says that a workload takes HBONE.
const tunnelLabel = "networking.istio.io/tunnel"

// nativeSidecar reports whether the proxy is an init container that goes on running. Only "false" turns it off.
func (d *Data) nativeSidecar() bool {
	if v := d.annotation(annotation.SidecarNativeSidecar.Name, ""); v != "" {
		return v != "false"
	}
	return d.NativeSidecars
}

func (d *Data) sidecarContainer() (*corev1.Container, error) {
	p := &d.Chart.Global.Proxy
	c := &corev1.Container{Name: ProxyContainer, Image: d.image(),
		Ports: []corev1.ContainerPort{{ContainerPort: 15090, Protocol: corev1.ProtocolTCP, Name: "http-envoy-prom"}},
		Args:  d.agentArgs("sidecar"), ImagePullPolicy: d.Chart.Global.ImagePullPolicy,
		Lifecycle: d.sidecarLifecycle(), SecurityContext: d.proxySecurity()}
	if p.OutlierLogPath != "" {
		c.Args = append(c.Args, "--outlierLogPath="+p.OutlierLogPath)
	}
	var err error
	if c.Env, err = d.sidecarEnv(); err != nil {
		return nil, err
	}
	if c.Resources, err = d.resources(); err != nil {
		return nil, err
	}
	if c.VolumeMounts, err = d.sidecarMounts(); err != nil {
		return nil, err
	}
	if d.statusPort() == "0" {
		return c, nil
	}
	if p.StartupProbe.Enabled {
		c.StartupProbe = readyProbe(15021)
		c.StartupProbe.PeriodSeconds, c.StartupProbe.FailureThreshold = 1, p.StartupProbe.FailureThreshold
	}
	c.ReadinessProbe, err = d.readiness(15021)
	return c, err
}

// sidecarLifecycle returns the values' own; or the application waits for the proxy; or a native sidecar drains when the
// pod begins to end, for it is told to end only after the application has.
func (d *Data) sidecarLifecycle() *corev1.Lifecycle {
	p := &d.Chart.Global.Proxy
	switch {
	case p.Lifecycle != nil:
		return p.Lifecycle.DeepCopy()
	case d.nativeSidecar():
		return &corev1.Lifecycle{PreStop: command("pilot-agent", "request", "--debug-port="+d.statusPort(), "POST", "drain")}
	case d.ProxyConfig.GetHoldApplicationUntilProxyStarts().GetValue() || p.HoldApplicationUntilProxyStart:
		return &corev1.Lifecycle{PostStart: command("pilot-agent", "wait")}
	}
	return nil
}

func (d *Data) sidecarEnv() ([]corev1.EnvVar, error) {
	e := environment{data: d}
	e.identity()
	e.limit("ISTIO_CPU_LIMIT", "limits.cpu")
	if err := e.configuration(); err != nil {
		return nil, err
	}
	e.value("ISTIO_META_APP_CONTAINERS", strings.Join(d.applications(), ","))
	e.memory()
	e.place()
	e.value("ISTIO_META_INTERCEPTION_MODE", cmp.Or(d.annotation(annotation.SidecarInterceptionMode.Name, ""),
		d.ProxyConfig.GetInterceptionMode().String()))
	e.workload()
	e.trust()
	if err := e.tracer(); err != nil {
		return nil, err
	}
	e.metadata()
	return e.vars, nil
}

func (d *Data) sidecarMounts() ([]corev1.VolumeMount, error) {
	out := []corev1.VolumeMount{mount(workloadSocket, "/var/run/secrets/workload-spiffe-uds"),
		mount(credentialSocket, "/var/run/secrets/credential-uds"), d.certsMount()}
	out = append(out, d.rootMount()...)
	out = append(out, mount(caCRL, "/var/run/secrets/istio/crl"), mount(istioData, "/var/lib/istio/data"))
	out = append(out, d.bootstrapMount()...)
	out = append(out, mount(istioEnvoy, "/etc/istio/proxy"), mount(istioToken, "/var/run/secrets/tokens"))
	out = append(out, d.mountedMount()...)
	out = append(out, mount(podInfo, "/etc/istio/pod"))
	if dir := d.lightstep(); dir != "" {
		out = append(out, readOnly(lightstepCerts, dir))
	}
	users, err := d.userVolumeMounts()
	return append(out, users...), err
}

func (d *Data) sidecarVolumes() ([]corev1.Volume, error) {
	out := []corev1.Volume{bare(workloadSocket), bare(credentialSocket), d.certsVolume(bare(workloadCerts))}
	out = append(out, d.bootstrapVolume()...)
	out = append(out, emptyDir(istioEnvoy, corev1.StorageMediumMemory), emptyDir(istioData, ""), infoVolume(),
		d.tokenVolume())
	out = append(out, d.rootVolume()...)
	out = append(out, configMap(caCRL, "istio-ca-crl", new(true)))
	out = append(out, d.mountedVolume()...)
	users, err := d.userVolumes()
	out = append(out, users...)
	if d.lightstep() != "" {
		out = append(out, secret(lightstepCerts, "lightstep.cacert"))
	}
	return out, err
}

// lightstep returns the directory of the certificates of a Lightstep tracer, if that is the tracer and has any.
func (d *Data) lightstep() string {
	settings := d.ProxyConfig.GetTracing().GetTlsSettings()
	if d.Chart.Global.Proxy.Tracer != "lightstep" || settings == nil {
		return ""
	}
	dir, _ := path.Split(settings.GetCaCertificates())
	return dir
}
