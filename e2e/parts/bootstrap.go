package parts

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// Workload names the pod of an Envoy or a gRPC client.
type Workload struct {
	Name, Namespace, IP string
	Labels              map[string]string
	// Cluster is the registry's name; empty means "Kubernetes", istiod's default.
	Cluster string
}

// nodeID returns the node id that agents give to their proxies.
func (w Workload) nodeID(kind string) string {
	return fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", kind, w.IP, w.Name, w.Namespace, w.Namespace)
}

func (w Workload) metadata() map[string]any {
	cluster := w.Cluster
	if cluster == "" {
		cluster = "Kubernetes"
	}
	return map[string]any{
		"NAME": w.Name, "NAMESPACE": w.Namespace, "LABELS": w.Labels,
		"INSTANCE_IPS": w.IP, "CLUSTER_ID": cluster, "SERVICE_ACCOUNT": "default",
	}
}

// tree is a JSON object.
type tree = map[string]any

// bootstrap returns an Envoy's bootstrap, which names pilotd and the agent's secrets, and contains nothing of the mesh.
func bootstrap(s EnvoySpec, secrets net.Addr) (tree, error) {
	ads, err := staticCluster("xds-grpc", s.XDS)
	if err != nil {
		return nil, err
	}
	sds, err := staticCluster("sds-grpc", secrets.String())
	if err != nil {
		return nil, err
	}
	metadata := s.Workload.metadata()
	metadata["INTERCEPTION_MODE"] = "REDIRECT"
	for name, value := range s.Metadata {
		metadata[name] = value
	}
	source := tree{"ads": tree{}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"}
	return tree{
		"node": tree{
			"id": s.Workload.nodeID(string(s.Kind)), "cluster": s.Workload.Labels["app"] + "." + s.Workload.Namespace,
			"metadata": metadata,
		},
		"admin": tree{"address": socketAddress(s.Workload.IP, adminPort)},
		"dynamic_resources": tree{
			"lds_config": source, "cds_config": source,
			"ads_config": tree{
				"api_type": string(s.Protocol), "transport_api_version": "V3",
				"set_node_on_first_message_only": true,
				"grpc_services":                  []tree{{"envoy_grpc": tree{"cluster_name": "xds-grpc"}}},
			},
		},
		"static_resources": tree{"clusters": []tree{ads, sds}},
	}, nil
}

// secure makes the bootstrap's first cluster, which is pilotd, use TLS with a certificate of the workload.
func secure(t testing.TB, config tree, s EnvoySpec) {
	t.Helper()
	chain, key, err := s.Secrets.workload(s.Workload)
	if err != nil {
		t.Fatal(err)
	}
	const context = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	text := func(b []byte) tree { return tree{"inline_string": string(b)} }
	config["static_resources"].(tree)["clusters"].([]tree)[0]["transport_socket"] = tree{
		"name": "envoy.transport_sockets.tls",
		"typed_config": tree{"@type": context, "sni": pilotdHost, "common_tls_context": tree{
			"alpn_protocols":   []string{"h2"},
			"tls_certificates": []tree{{"certificate_chain": text(chain), "private_key": text(key)}},
			"validation_context": tree{"trusted_ca": text(s.Secrets.Root), "match_typed_subject_alt_names": []tree{
				{"san_type": "DNS", "matcher": tree{"exact": pilotdHost}}}},
		}},
	}
}

// staticCluster returns an HTTP/2 cluster with one IP address.
func staticCluster(name, addr string) (tree, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	var number int
	if _, err := fmt.Sscan(port, &number); err != nil {
		return nil, fmt.Errorf("port of %s: %w", addr, err)
	}
	const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	return tree{
		"name": name, "type": "STATIC", "connect_timeout": "1s",
		"typed_extension_protocol_options": tree{options: tree{
			"@type":                "type.googleapis.com/" + options,
			"explicit_http_config": tree{"http2_protocol_options": tree{}},
		}},
		"load_assignment": tree{"cluster_name": name, "endpoints": []tree{{
			"lb_endpoints": []tree{{"endpoint": tree{"address": socketAddress(strings.Trim(host, "[]"), number)}}},
		}}},
	}, nil
}

func socketAddress(ip string, port int) tree {
	return tree{"socket_address": tree{"address": ip, "port_value": port}}
}
