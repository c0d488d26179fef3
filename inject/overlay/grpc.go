package overlay

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"
)

// grpcAgent returns an agent without Envoy, for applications whose gRPC library speaks xDS itself.
func grpcAgent(d *Data) (*corev1.Pod, error) {
	agent, err := d.grpcContainer()
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	pod.Labels, pod.Annotations = d.canonical(), d.annotations()
	pod.Annotations[annotation.SidecarRewriteAppHTTPProbers.Name] = "false"
	pod.Spec.Containers = []corev1.Container{*agent}
	for _, name := range d.applications() {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name,
			Env: []corev1.EnvVar{{Name: "GRPC_XDS_EXPERIMENTAL_SECURITY_SUPPORT", Value: "true"},
				{Name: "GRPC_XDS_BOOTSTRAP", Value: "/etc/istio/proxy/grpc-bootstrap.json"}},
			VolumeMounts: []corev1.VolumeMount{mount(istioData, "/var/lib/istio/data"), mount(istioXDS, "/etc/istio/proxy"),
				d.certsMount()}})
	}
	pod.Spec.Volumes = append([]corev1.Volume{bare(workloadSocket), d.certsVolume(bare(workloadCerts))},
		d.bootstrapVolume()...)
	pod.Spec.Volumes = append(pod.Spec.Volumes, emptyDir(istioXDS, corev1.StorageMediumMemory), emptyDir(istioData, ""),
		infoVolume(), d.tokenVolume())
	pod.Spec.Volumes = append(pod.Spec.Volumes, d.rootVolume()...)
	pod.Spec.Volumes = append(pod.Spec.Volumes, d.mountedVolume()...)
	users, err := d.userVolumes()
	if err != nil {
		return nil, err
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, users...)
	pod.Spec.ImagePullSecrets = d.pullSecrets()
	return pod, nil
}

func (d *Data) grpcContainer() (*corev1.Container, error) {
	g := &d.Chart.Global
	c := &corev1.Container{Name: ProxyContainer, Image: d.image(), Args: d.agentArgs("sidecar"),
		Ports:           []corev1.ContainerPort{{ContainerPort: 15020, Protocol: corev1.ProtocolTCP, Name: "mesh-metrics"}},
		ImagePullPolicy: g.ImagePullPolicy,
		Lifecycle: &corev1.Lifecycle{
			PostStart: command("pilot-agent", "wait", "--url=http://localhost:15020/healthz/ready")}}
	var err error
	if c.Env, err = d.grpcEnv(); err != nil {
		return nil, err
	}
	if c.Resources, err = d.resources(); err != nil {
		return nil, err
	}
	if d.statusPort() != "0" {
		if c.ReadinessProbe, err = d.readiness(15020); err != nil {
			return nil, err
		}
	}
	c.VolumeMounts = []corev1.VolumeMount{mount(workloadSocket, "/var/run/secrets/workload-spiffe-uds"), d.certsMount()}
	c.VolumeMounts = append(c.VolumeMounts, d.rootMount()...)
	c.VolumeMounts = append(c.VolumeMounts, mount(istioData, "/var/lib/istio/data"), mount(istioXDS, "/etc/istio/proxy"),
		mount(istioToken, "/var/run/secrets/tokens"))
	c.VolumeMounts = append(c.VolumeMounts, d.mountedMount()...)
	c.VolumeMounts = append(c.VolumeMounts, mount(podInfo, "/etc/istio/pod"))
	users, err := d.userVolumeMounts()
	c.VolumeMounts = append(c.VolumeMounts, users...)
	return c, err
}

func (d *Data) grpcEnv() ([]corev1.EnvVar, error) {
	e := environment{data: d}
	e.value("ISTIO_META_GENERATOR", "grpc")
	e.value("OUTPUT_CERTS", "/var/lib/istio/data")
	e.identity()
	if err := e.configuration(); err != nil {
		return nil, err
	}
	e.value("ISTIO_META_APP_CONTAINERS", strings.Join(d.applications(), ","))
	e.place()
	e.workload()
	e.trust()
	e.metadata()
	e.value("ISTIO_META_DNS_CAPTURE", "false")
	e.value("DISABLE_ENVOY", "true")
	return e.vars, nil
}

const (
	bootstrapDir    = "/var/lib/grpc/data/"
	bootstrapVolume = "grpc-io-proxyless-bootstrap"
)

// grpcSimple makes the template that adds a bootstrap file for gRPC libraries and nothing else: plain text, no
// identity.
func grpcSimple(d *Data) (*corev1.Pod, error) {
	e := environment{data: d}
	e.field("INSTANCE_IP", "status.podIP")
	e.field("POD_NAME", "metadata.name")
	e.field("POD_NAMESPACE", "metadata.namespace")
	e.value("ISTIO_NAMESPACE", d.Chart.Global.IstioNamespace+"\n")
	at := []corev1.VolumeMount{mount(bootstrapVolume, bootstrapDir)}

	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{annotation.SidecarRewriteAppHTTPProbers.Name: "false"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "grpc-bootstrap-init", Image: "busybox:1.28", Env: e.vars,
		Command: []string{"sh", "-c", bootstrapScript()}, VolumeMounts: at}}
	for i := range d.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: d.Spec.Containers[i].Name, VolumeMounts: at,
			Env: []corev1.EnvVar{{Name: "GRPC_XDS_BOOTSTRAP", Value: bootstrapDir + "bootstrap.json"},
				{Name: "GRPC_GO_LOG_VERBOSITY_LEVEL", Value: "99"}, {Name: "GRPC_GO_LOG_SEVERITY_LEVEL", Value: "info"}}})
	}
	pod.Spec.Volumes = []corev1.Volume{emptyDir(bootstrapVolume, "")}
	return pod, nil
}

// bootstrapScript writes the bootstrap file; the shell fills in what only the running pod knows.
func bootstrapScript() string {
	return strings.Join([]string{
		`NODE_ID="sidecar~${INSTANCE_IP}~${POD_NAME}.${POD_NAMESPACE}~cluster.local"`,
		`SERVER_URI="dns:///istiod.${ISTIO_NAMESPACE}.svc:15010"`,
		`echo '`,
		`{`,
		`  "xds_servers": [`,
		`    {`,
		`      "server_uri": "'${SERVER_URI}'",`,
		`      "channel_creds": [{"type": "insecure"}],`,
		`      "server_features" : ["xds_v3"]`,
		`    }`,
		`  ],`,
		`  "node": {`,
		`    "id": "'${NODE_ID}'",`,
		`    "metadata": {`,
		`      "GENERATOR": "grpc"`,
		`    }`,
		`  }`,
		`}' > ` + bootstrapDir + `bootstrap.json`,
	}, "\n")
}
