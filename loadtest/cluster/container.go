package cluster

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// application returns the application's container in a pod.
func application(app string) corev1.Container {
	return corev1.Container{
		Name: app, Image: "registry.example.com/" + app + ":1.0", ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env:       []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "PORT", Value: "8080"}},
		Resources: resources("100m", "128Mi"),
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/app-health/" + app + "/readyz", Port: intstr.FromInt32(15020)}}},
	}
}

// proxy returns the container of a sidecar or a gateway.
func proxy(o *corev1.Pod, kind string) corev1.Container {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	user, yes, no := int64(1337), true, false
	return corev1.Container{
		Name: "istio-proxy", Image: "docker.io/istio/proxyv2:1.30.0", ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"proxy", kind, "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--proxyLogLevel=warning",
			"--log_output_level=default:info"},
		Env: []corev1.EnvVar{
			{Name: "PILOT_CERT_PROVIDER", Value: "istiod"}, {Name: "CA_ADDR", Value: "istiod.istio-system.svc:15012"},
			field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"), field("INSTANCE_IP",
				"status.podIP"),
			field("SERVICE_ACCOUNT", "spec.serviceAccountName"), {Name: "PROXY_CONFIG", Value: "{}\n"},
			{Name: "ISTIO_META_APP_CONTAINERS", Value: o.Labels["app"]},
			{Name: "ISTIO_META_CLUSTER_ID", Value: "Kubernetes"},
			{Name: "ISTIO_META_INTERCEPTION_MODE", Value: "REDIRECT"},
			{Name: "ISTIO_META_MESH_ID", Value: "cluster.local"},
			{Name: "ISTIO_META_WORKLOAD_NAME", Value: o.Labels["app"] + "-" + o.Labels["version"]},
			{Name: "TRUST_DOMAIN", Value: "cluster.local"},
		},
		Ports: []corev1.ContainerPort{{Name: "http-envoy-prom", ContainerPort: 15090,
			Protocol: corev1.ProtocolTCP}},
		Resources: resources("100m", "128Mi"),
		SecurityContext: &corev1.SecurityContext{RunAsUser: &user, RunAsGroup: &user, RunAsNonRoot: &yes,
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 15, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(15021)}}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "workload-socket", MountPath: "/var/run/secrets/workload-spiffe-uds"},
			{Name: "istiod-ca-cert", MountPath: "/var/run/secrets/istio"},
			{Name: "istio-data", MountPath: "/var/lib/istio/data"},
			{Name: "istio-envoy", MountPath: "/etc/istio/proxy"},
			{Name: "istio-token", MountPath: "/var/run/secrets/tokens"},
			{Name: "istio-podinfo", MountPath: "/etc/istio/pod"},
		},
	}
}

// redirection returns the container that captures the pod's traffic.
func redirection() corev1.Container {
	user, no := int64(0), false
	return corev1.Container{
		Name: "istio-init", Image: "docker.io/istio/proxyv2:1.30.0", ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"istio-iptables", "-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*",
			"-x", "", "-b", "*", "-d", "15090,15021,15020"},
		Resources: resources("10m", "40Mi"),
		SecurityContext: &corev1.SecurityContext{RunAsUser: &user, AllowPrivilegeEscalation: &no,
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"},
				Drop: []corev1.Capability{"ALL"}}},
	}
}

func resources(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}}
}

func volumes() []corev1.Volume {
	seconds := int64(43200)
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return []corev1.Volume{
		{Name: "workload-socket", VolumeSource: empty},
		{Name: "istio-envoy", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "istio-data", VolumeSource: empty},
		{Name: "istio-podinfo",
			VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
					FieldPath: "metadata.labels"}}}}}},
		{Name: "istio-token", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "istio-ca",
					ExpirationSeconds: &seconds, Path: "istio-token"}}}}}},
		{Name: "istiod-ca-cert", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "istio-ca-root-cert"}}}},
	}
}

// uid derives a UID from names, so that it is always the same.
func uid(parts ...string) types.UID {
	sum := sha256.Sum256([]byte(fmt.Sprint(parts)))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
