package bootstrap

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotd/pilotd/agent/pod"
	"github.com/pilotd/pilotd/agent/upstream"
)

// JSON returns a bootstrap in the JSON form that Envoy reads from a file. Equal bootstraps give equal bytes.
func JSON(b *bootstrapv3.Bootstrap) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, "", " ") // protojson varies its spaces at random; Indent makes them equal
	return out.Bytes(), err
}

// GRPC returns the bootstrap of gRPC libraries that speak xDS: the agent's socket for configuration, and files for
// certificates.
func GRPC(p *pod.Pod, socket, certificates string) ([]byte, error) {
	node, err := p.Node()
	if err != nil {
		return nil, err
	}
	said, err := protojson.Marshal(node)
	if err != nil {
		return nil, err
	}
	var asMap map[string]any
	if err := json.Unmarshal(said, &asMap); err != nil {
		return nil, err
	}
	type tree = map[string]any
	return json.MarshalIndent(tree{
		"xds_servers": []tree{{"server_uri": "unix://" + socket, "channel_creds": []tree{{"type": "insecure"}},
			"server_features": []string{"xds_v3"}}},
		"node": asMap,
		"certificate_providers": tree{"default": tree{"plugin_name": "file_watcher", "config": tree{
			"certificate_file":    filepath.Join(certificates, upstream.ChainFile),
			"private_key_file":    filepath.Join(certificates, upstream.KeyFile),
			"ca_certificate_file": filepath.Join(certificates, upstream.RootFile),
			"refresh_interval":    "900s"}}},
		"server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s",
	}, "", " ")
}
