package pod

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	meshconfig "istio.io/api/mesh/v1alpha1"
)

// ReadyPort returns the port of Envoy's listener for readiness.
func (p *Pod) ReadyPort() uint32 { return p.Env.port("ENVOY_STATUS_PORT", 15021) }

// PrometheusPort returns the port of Envoy's listener for its metrics.
func (p *Pod) PrometheusPort() uint32 { return p.Env.port("ENVOY_PROMETHEUS_PORT", 15090) }

// SecretSocket returns the name of the socket, in its directory, at which Envoy gets certificates.
func (p *Pod) SecretSocket() string { return p.Env.Text("WORKLOAD_IDENTITY_SOCKET_FILE", "socket") }

const (
	localityLabel      = "istio-locality"
	canonicalNameLabel = "service.istio.io/canonical-name"
	appLabel           = "app"
	defaultCluster     = "istio-proxy"
)

// Node returns the node that the proxy sends to its control plane.
func (p *Pod) Node() (*corev3.Node, error) {
	metadata, err := p.metadata()
	if err != nil {
		return nil, err
	}
	s, err := structpb.NewStruct(metadata)
	if err != nil {
		return nil, fmt.Errorf("node metadata: %w", err)
	}
	return &corev3.Node{
		Id:      fmt.Sprintf("%s~%s~%s.%s~%s", p.Kind, p.IP(), p.Name, p.Namespace, p.Domain),
		Cluster: p.Service(), Metadata: s, Locality: p.locality(),
	}, nil
}

// Service returns the name that the proxy gives itself in traces and access logs.
func (p *Pod) Service() string {
	canonical := cmp.Or(p.Labels[canonicalNameLabel], p.Labels[appLabel], defaultCluster)
	switch c := p.Config.ClusterName.(type) {
	case *meshconfig.ProxyConfig_ServiceCluster:
		if c.ServiceCluster != "" && c.ServiceCluster != defaultCluster {
			return c.ServiceCluster
		}
	case *meshconfig.ProxyConfig_TracingServiceName_:
		switch c.TracingServiceName {
		case meshconfig.ProxyConfig_CANONICAL_NAME_ONLY:
			return canonical
		case meshconfig.ProxyConfig_CANONICAL_NAME_AND_NAMESPACE:
			return canonical + "." + p.Namespace
		}
	}
	return cmp.Or(p.Labels[appLabel], defaultCluster) + "." + p.Namespace
}

// locality parses the label region.zone.subzone, which may have slashes in place of the dots.
func (p *Pod) locality() *corev3.Locality {
	text := p.Labels[localityLabel]
	if text == "" {
		return nil
	}
	separator := "."
	if strings.Contains(text, "/") {
		separator = "/"
	}
	parts := append(strings.SplitN(text, separator, 3), "", "")
	return &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

// metadata returns the node metadata from the pod's environment and files, in the form that control planes expect:
// booleans of the environment are strings, ports are numbers, lists are comma-separated strings.
func (p *Pod) metadata() (map[string]any, error) {
	out := map[string]any{}
	names, values := p.Env.WithPrefix("ISTIO_META_")
	for _, name := range names {
		out[name] = values[name]
	}
	labels := p.Labels
	names, values = p.Env.WithPrefix("ISTIO_METAJSON_")
	for _, name := range names {
		given := map[string]any{}
		if err := json.Unmarshal([]byte(values[name]), &given); err != nil {
			return nil, fmt.Errorf("environment variable ISTIO_METAJSON_%s: want a JSON object: %w", name, err)
		}
		if name == "LABELS" { // labels of virtual machines, which have no downward API
			out["STATIC_LABELS"] = given
			labels = withTexts(labels, given)
			continue
		}
		for k, v := range given {
			out[k] = v
		}
	}
	config, err := asMap(p.Config)
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]any{
		"NAME": p.Name, "NAMESPACE": p.Namespace, "INSTANCE_IPS": p.joinedIPs(), "PROXY_CONFIG": config,
		"LABELS": anyMap(labels), "ANNOTATIONS": anyMap(p.Annotations),
		"PILOT_SAN":         []any{ServerName(p.Config.DiscoveryAddress, p.Env.Text("ISTIOD_SAN", ""))},
		"ENVOY_STATUS_PORT": p.ReadyPort(), "ENVOY_PROMETHEUS_PORT": p.PrometheusPort(),
		"WORKLOAD_IDENTITY_SOCKET_FILE": p.SecretSocket(),
	} {
		out[k] = v
	}
	for k, v := range map[string]string{"SERVICE_ACCOUNT": p.ServiceAccount,
		"ISTIO_REVISION": p.Annotations[annotationRevision], "OUTLIER_LOG_PATH": p.Env.Text("OUTLIER_LOG_PATH", ""),
		"EXIT_ON_ZERO_ACTIVE_CONNECTIONS": p.Env.Text("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", ""),
		"MESH_ID":                         cmp.Or(p.Config.MeshId, p.Env.Text("ISTIO_META_MESH_ID", ""))} {
		if v != "" {
			out[k] = v
		}
	}
	return out, nil
}

func (p *Pod) joinedIPs() string {
	var out []string
	for _, a := range p.IPs {
		out = append(out, a.String())
	}
	return strings.Join(out, ",")
}

// ServerName returns the DNS name that the certificate of the control plane at an address must have: san if given,
// otherwise the host of the address. For a tunnel on this machine it is the usual name of istiod.
func ServerName(address, san string) string {
	host := address
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		host = strings.Trim(address[:i], "[]")
	}
	switch {
	case san != "":
		return san
	case strings.Contains(host, "localhost"):
		return "istiod.istio-system.svc"
	}
	return host
}

func asMap(c *meshconfig.ProxyConfig) (map[string]any, error) {
	text, err := protojson.Marshal(c)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(text, &out)
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// withTexts adds to labels the entries of more that are strings.
func withTexts(labels map[string]string, more map[string]any) map[string]string {
	out := make(map[string]string, len(labels)+len(more))
	for k, v := range labels {
		out[k] = v
	}
	for k, v := range more {
		if text, ok := v.(string); ok {
			out[k] = text
		}
	}
	return out
}
