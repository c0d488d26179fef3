package overlay

import (
	"cmp"
	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"
)

// Names of volumes.
const (
	workloadSocket   = "workload-socket"
	credentialSocket = "credential-socket"
	workloadCerts    = "workload-certs"
	gkeCerts         = "gke-workload-certificate"
	customBootstrap  = "custom-bootstrap-volume"
	istioEnvoy       = "istio-envoy"
	istioXDS         = "istio-xds"
	istioData        = "istio-data"
	podInfo          = "istio-podinfo"
	istioToken       = "istio-token"
	istiodCA         = "istiod-ca-cert"
	caCRL            = "istio-ca-crl"
	mountedCerts     = "istio-certs"
	lightstepCerts   = "lightstep-certs"
)

func mount(name, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path}
}

func readOnly(name, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true}
}

// bare returns a volume without a source. The API server makes an empty directory of it, unless the user has a volume
// of the name (a CSI driver's sockets, for instance), whose source then stays.
func bare(name string) corev1.Volume { return corev1.Volume{Name: name} }

func emptyDir(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func configMap(name, from string, optional *bool) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: from}, Optional: optional}}}
}

func secret(name, from string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: from, Optional: new(true)}}}
}

// certsMount returns where the proxy finds certificates that somebody else has made.
func (d *Data) certsMount() corev1.VolumeMount {
	const path = "/var/run/secrets/workload-spiffe-credentials"
	if d.Chart.Global.CAName == "GkeWorkloadCertificate" {
		return readOnly(gkeCerts, path)
	}
	return mount(workloadCerts, path)
}

func (d *Data) certsVolume(otherwise corev1.Volume) corev1.Volume {
	if d.Chart.Global.CAName == "GkeWorkloadCertificate" {
		return corev1.Volume{Name: gkeCerts, VolumeSource: corev1.VolumeSource{
			CSI: &corev1.CSIVolumeSource{Driver: "workloadcertificates.security.cloud.google.com"}}}
	}
	return otherwise
}

// rootMount returns where agents find the root that the control plane's certificate hangs from.
func (d *Data) rootMount() []corev1.VolumeMount {
	if d.Chart.Global.PilotCertSource != "istiod" {
		return nil
	}
	return []corev1.VolumeMount{mount(istiodCA, "/var/run/secrets/istio")}
}

func (d *Data) rootVolume() []corev1.Volume {
	if d.Chart.Global.PilotCertSource != "istiod" {
		return nil
	}
	if d.Chart.Pilot.Env["ENABLE_CLUSTER_TRUST_BUNDLE_API"] == "true" {
		bundle := &corev1.ClusterTrustBundleProjection{Name: new("istio.io:istiod-ca:root-cert"), Path: "root-cert.pem"}
		return []corev1.Volume{{Name: istiodCA, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ClusterTrustBundle: bundle}}}}}}
	}
	return []corev1.Volume{configMap(istiodCA, "istio-ca-root-cert", nil)}
}

// infoVolume returns a volume with the pod's labels and annotations as files.
func infoVolume() corev1.Volume {
	item := func(path, field string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}
	}
	return corev1.Volume{Name: podInfo, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{item("labels", "metadata.labels"),
			item("annotations", "metadata.annotations")}}}}
}

// tokenVolume returns the token that proves the pod's identity to the control plane alone.
func (d *Data) tokenVolume() corev1.Volume {
	token := &corev1.ServiceAccountTokenProjection{Audience: d.Chart.Global.SDS.Token.Audience,
		ExpirationSeconds: new(int64(43200)), Path: "istio-token"}
	return corev1.Volume{Name: istioToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: token}}}}}
}

// mountedMount and mountedVolume are keys and certificates from a secret, for workloads that do their own TLS.
func (d *Data) mountedMount() []corev1.VolumeMount {
	if !d.Chart.Global.MountMtlsCerts {
		return nil
	}
	return []corev1.VolumeMount{readOnly(mountedCerts, "/etc/certs/")}
}

func (d *Data) mountedVolume() []corev1.Volume {
	if !d.Chart.Global.MountMtlsCerts {
		return nil
	}
	return []corev1.Volume{secret(mountedCerts, "istio."+cmp.Or(d.Spec.ServiceAccountName, "default"))}
}

func (d *Data) bootstrapMount() []corev1.VolumeMount {
	if !d.has(annotation.SidecarBootstrapOverride.Name) {
		return nil
	}
	return []corev1.VolumeMount{mount(customBootstrap, "/etc/istio/custom-bootstrap")}
}

func (d *Data) bootstrapVolume() []corev1.Volume {
	if !d.has(annotation.SidecarBootstrapOverride.Name) {
		return nil
	}
	return []corev1.Volume{configMap(customBootstrap, d.annotation(annotation.SidecarBootstrapOverride.Name, ""), nil)}
}
