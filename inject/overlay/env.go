package overlay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

// environment collects variables in the order in which agents and tools find them in pods that istiod injects.
type environment struct {
	data *Data
	vars []corev1.EnvVar
}

func (e *environment) value(name, value string) {
	e.vars = append(e.vars, corev1.EnvVar{Name: name, Value: value})
}

// ifAny sets a variable unless its value is empty.
func (e *environment) ifAny(name, value string) {
	if value != "" {
		e.value(name, value)
	}
}

// field sets a variable to a field of the pod, which the kubelet fills in.
func (e *environment) field(name, path string) {
	e.vars = append(e.vars, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
}

// limit sets a variable to one of the container's resource limits.
func (e *environment) limit(name, of string) {
	e.vars = append(e.vars, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: of, Divisor: resource.MustParse("1")}}})
}

// identity adds the variables that say how the agent gets its certificate, and who it is.
func (e *environment) identity() {
	g := &e.data.Chart.Global
	if e.data.InboundTrafficPolicyMode == "localhost" {
		e.value("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", "true")
	}
	e.value("PILOT_CERT_PROVIDER", g.PilotCertSource)
	ca := g.CAAddress
	if ca == "" {
		ca = "istiod"
		if r := e.data.Chart.Revision; r != "" {
			ca += "-" + r
		}
		ca += "." + g.IstioNamespace + ".svc:15012"
	}
	e.value("CA_ADDR", ca)
	e.field("POD_NAME", "metadata.name")
	e.field("POD_NAMESPACE", "metadata.namespace")
	e.field("INSTANCE_IP", "status.podIP")
	e.field("SERVICE_ACCOUNT", "spec.serviceAccountName")
	e.field("HOST_IP", "status.hostIP")
}

// configuration returns the ProxyConfig and the ports of the pod's containers.
func (e *environment) configuration() error {
	ports, err := podPorts(e.data.Spec.Containers)
	if err != nil {
		return err
	}
	config, err := proxyConfigJSON(e.data.ProxyConfig, e.data.DefaultProxy)
	if err != nil {
		return err
	}
	e.value("PROXY_CONFIG", config+"\n")
	e.value("ISTIO_META_POD_PORTS", ports)
	return nil
}

func (e *environment) memory() {
	e.limit("GOMEMLIMIT", "limits.memory")
	e.ifAny("COMPLIANCE_POLICY", e.data.CompliancePolicy)
}

func (e *environment) place() {
	e.value("ISTIO_META_CLUSTER_ID", cmp.Or(e.data.Chart.Global.MultiCluster.ClusterName, "Kubernetes"))
	e.field("ISTIO_META_NODE_NAME", "spec.nodeName")
}

// workload adds the variables that name the workload that the pod belongs to.
func (e *environment) workload() {
	d := e.data
	e.ifAny("ISTIO_META_NETWORK", d.Chart.Global.Network)
	e.ifAny(
		"ISTIO_META_WORKLOAD_NAME",
		cmp.Or(d.ObjectMeta.Labels[label.ServiceWorkloadName.Name], d.DeploymentMeta.Name),
	)
	if d.TypeMeta.APIVersion != "" && d.DeploymentMeta.Name != "" {
		e.value("ISTIO_META_OWNER", fmt.Sprintf("kubernetes://apis/%s/namespaces/%s/%ss/%s", d.TypeMeta.APIVersion,
			cmp.Or(d.DeploymentMeta.Namespace, "default"), strings.ToLower(d.TypeMeta.Kind), d.DeploymentMeta.Name))
	}
	if d.has(annotation.SidecarBootstrapOverride.Name) {
		e.value("ISTIO_BOOTSTRAP_OVERRIDE", "/etc/istio/custom-bootstrap/custom_bootstrap.json")
	}
}

func (e *environment) trust() {
	domain := cmp.Or(e.data.MeshConfig.GetTrustDomain(), e.data.Chart.Global.TrustDomain)
	e.ifAny("ISTIO_META_MESH_ID", cmp.Or(e.data.Chart.Global.MeshID, domain))
	e.ifAny("TRUST_DOMAIN", domain)
}

// datadogEnv is the annotation with variables for Datadog's tracer.
const datadogEnv = "apm.datadoghq.com/env"

func (e *environment) tracer() error {
	text, ok := e.data.ObjectMeta.Annotations[datadogEnv]
	if !ok || e.data.Chart.Global.Proxy.Tracer != "datadog" {
		return nil
	}
	vars := map[string]any{}
	if err := json.Unmarshal([]byte(text), &vars); err != nil {
		return fmt.Errorf("annotation %s: expected a JSON object: %w", datadogEnv, err)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		e.value(name, fmt.Sprint(vars[name]))
	}
	return nil
}

// metadata adds proxyMetadata of the ProxyConfig.
func (e *environment) metadata() {
	e.vars = append(e.vars, e.data.metadataEnv()...)
}

func (d *Data) metadataEnv() []corev1.EnvVar {
	var out []corev1.EnvVar
	all := d.ProxyConfig.GetProxyMetadata()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, corev1.EnvVar{Name: name, Value: all[name]})
	}
	return out
}

// podPorts lists the containers' ports as the agent reads them: a JSON list, one port a line.
func podPorts(containers []corev1.Container) (string, error) {
	var b strings.Builder
	b.WriteString("[\n")
	first := true
	for i := range containers {
		for _, p := range containers[i].Ports {
			text, err := json.Marshal(p)
			if err != nil {
				return "", err
			}
			b.WriteString("    ")
			if !first {
				b.WriteString(",")
			}
			b.Write(text)
			b.WriteString("\n")
			first = false
		}
	}
	b.WriteString("]")
	return b.String(), nil
}
