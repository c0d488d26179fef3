package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// bootstrap is the gateway's own configuration: who it is and where pilotd is. It names
// no secrets' server, for the sample mesh asks for no certificates.
const bootstrap = `# Written by examples/run.
node:
  id: router~127.0.0.1~gateway.istio-system~istio-system.svc.cluster.local
  cluster: gateway.istio-system
  metadata:
    NAME: gateway
    NAMESPACE: istio-system
    CLUSTER_ID: Kubernetes
    INSTANCE_IPS: 127.0.0.1
    LABELS: {istio: ingressgateway}
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 15000}}
dynamic_resources:
  lds_config: {ads: {}, initial_fetch_timeout: 0s, resource_api_version: V3}
  cds_config: {ads: {}, initial_fetch_timeout: 0s, resource_api_version: V3}
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    set_node_on_first_message_only: true
    grpc_services: [{envoy_grpc: {cluster_name: xds-grpc}}]
static_resources:
  clusters:
  - name: xds-grpc
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: xds-grpc
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 15010}}}
`

// writeBootstrap writes the bootstrap into dir and returns its path.
func writeBootstrap(dir string) (string, error) {
	path := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(path, []byte(bootstrap), 0o600); err != nil {
		return "", fmt.Errorf("bootstrap: %w", err)
	}
	return path, nil
}
