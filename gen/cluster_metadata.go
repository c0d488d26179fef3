package gen

import (
	"strconv"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// istioMetadata returns what telemetry and tools read of a cluster.
func istioMetadata(fields map[string]*structpb.Value) *corepb.Metadata {
	return &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": {Fields: fields}}}
}

func outboundMetadata(k ClusterKey, p value.TrafficPolicy) *corepb.Metadata {
	fields := map[string]*structpb.Value{"services": listValue(serviceValue(k.Service.Host, k.Service.Name,
		k.Service.Namespace))}
	if k.Subset != "" {
		fields["subset"] = structpb.NewStringValue(k.Subset)
	} else if k.Service.External {
		fields["external"] = structpb.NewBoolValue(true)
	}
	if k.Rule != nil {
		fields["config"] = configValue(k.Rule)
		if t := p.TLS; t != nil && (t.Mode == value.SimpleTLS || t.Mode == value.MutualTLS) {
			fields["alpn_override"] = structpb.NewStringValue("false") // the server is none of the mesh's
		}
	}
	return istioMetadata(fields)
}

// configValue names the DestinationRule that a cluster is made by: of several that were merged the first.
func configValue(r *value.DestinationRule) *structpb.Value {
	return structpb.NewStringValue("/apis/networking.istio.io/v1/namespaces/" + r.Namespace + "/destination-rule/" +
		r.Name)
}

func serviceValue(host, name, namespace string) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"host": structpb.NewStringValue(host), "name": structpb.NewStringValue(name),
		"namespace": structpb.NewStringValue(namespace)}})
}

func listValue(values ...*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}

// statOf is what a pattern for the name of statistics can name.
type statOf struct {
	domain  string // of the cluster
	service *value.Service
	port    *value.Port
	subset  string
	target  int
}

// statName returns the name of statistics that the mesh's pattern gives; it ends in the delimiter that telemetry splits
// it at.
func statName(pattern string, of statOf) string {
	short := of.service.Host
	if of.service.Registry == value.RegistryKubernetes {
		short = strings.TrimSuffix(short, ".svc."+of.domain)
	}
	return strings.NewReplacer(
		"%SERVICE%", short, "%SERVICE_FQDN%", of.service.Host, "%SERVICE_NAME%", of.service.Name, "%SUBSET_NAME%",
		of.subset,
		"%SERVICE_PORT%", strconv.Itoa(of.port.Number), "%SERVICE_PORT_NAME%", of.port.Name, "%TARGET_PORT%",
		strconv.Itoa(of.target),
	).Replace(pattern) + ";"
}
