package overlay

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// gateway makes a pod's container of the proxy's name a gateway.
func gateway(d *Data) (*corev1.Pod, error) {
	g := &d.Chart.Global
	env, err := d.gatewayEnv()
	if err != nil {
		return nil, err
	}
	ready := readyProbe(15021)
	ready.InitialDelaySeconds, ready.PeriodSeconds = g.Proxy.ReadinessInitialDelaySeconds, g.Proxy.ReadinessPeriodSeconds
	ready.FailureThreshold = g.Proxy.ReadinessFailureThreshold
	proxy := corev1.Container{Name: ProxyContainer, Image: d.image(), Env: env, Args: d.agentArgs("router"),
		Ports:     []corev1.ContainerPort{{ContainerPort: 15090, Protocol: corev1.ProtocolTCP, Name: "http-envoy-prom"}},
		Lifecycle: g.Proxy.Lifecycle.DeepCopy(), ImagePullPolicy: g.ImagePullPolicy, ReadinessProbe: ready,
		SecurityContext: &corev1.SecurityContext{RunAsUser: new(d.ProxyUID), RunAsGroup: new(d.ProxyGID)}}
	proxy.VolumeMounts = []corev1.VolumeMount{mount(workloadSocket, "/var/run/secrets/workload-spiffe-uds"),
		mount(credentialSocket, "/var/run/secrets/credential-uds"), d.certsMount()}
	proxy.VolumeMounts = append(proxy.VolumeMounts, d.rootMount()...)
	proxy.VolumeMounts = append(proxy.VolumeMounts, mount(istioData, "/var/lib/istio/data"),
		mount(istioEnvoy, "/etc/istio/proxy"), mount(istioToken, "/var/run/secrets/tokens"))
	proxy.VolumeMounts = append(proxy.VolumeMounts, d.mountedMount()...)
	proxy.VolumeMounts = append(proxy.VolumeMounts, mount(podInfo, "/etc/istio/pod"))

	pod := &corev1.Pod{}
	pod.Labels, pod.Annotations = d.canonical(), d.annotations()
	pod.Spec.Containers = []corev1.Container{proxy}
	pod.Spec.SecurityContext = d.gatewaySecurity()
	pod.Spec.Volumes = []corev1.Volume{bare(workloadSocket), emptyDir(credentialSocket, ""),
		d.certsVolume(emptyDir(workloadCerts, "")), emptyDir(istioEnvoy, corev1.StorageMediumMemory),
		emptyDir(istioData, ""), infoVolume(), d.tokenVolume()}
	pod.Spec.Volumes = append(pod.Spec.Volumes, d.rootVolume()...)
	pod.Spec.Volumes = append(pod.Spec.Volumes, d.mountedVolume()...)
	pod.Spec.ImagePullSecrets = d.pullSecrets()
	return pod, nil
}

// gatewaySecurity lets a gateway that is not root listen at low ports, unless the values have a context of their own.
func (d *Data) gatewaySecurity() *corev1.PodSecurityContext {
	if s := d.Chart.Gateways.SecurityContext; s != nil && !reflect.ValueOf(*s).IsZero() {
		return s.DeepCopy()
	}
	return &corev1.PodSecurityContext{SeccompProfile: seccomp(d.Chart.Gateways.SeccompProfile),
		Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}}
}

func (d *Data) gatewayEnv() ([]corev1.EnvVar, error) {
	e := environment{data: d}
	e.identity()
	e.limit("ISTIO_CPU_LIMIT", "limits.cpu")
	if err := e.configuration(); err != nil {
		return nil, err
	}
	e.memory()
	e.value("ISTIO_META_APP_CONTAINERS", strings.Join(d.applications(), ","))
	e.place()
	e.value("ISTIO_META_INTERCEPTION_MODE", d.ProxyConfig.GetInterceptionMode().String())
	e.workload()
	e.trust()
	e.metadata()
	return e.vars, nil
}
