package gen

import (
	"cmp"
	"unique"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Field numbers of the parts that an assignment is joined from.
const (
	fieldAssignmentEndpoints = 2 // of ClusterLoadAssignment: LocalityLbEndpoints
	fieldLocalityEndpoints   = 2 // of LocalityLbEndpoints: LbEndpoint
	fieldEndpointMetadata    = 3 // of LbEndpoint: Metadata
)

// AssignmentName returns the header of an endpoint assignment, encoded.
func AssignmentName(name string) []byte {
	return Marshal(&endpointpb.ClusterLoadAssignment{ClusterName: name})
}

// LocalityField returns the beginning of the field that holds a group: up to its endpoints, which follow in that many
// bytes.
func LocalityField(g LocalityGroup, endpoints int) []byte {
	header := Marshal(LocalityHeader(g))
	b := protowire.AppendTag(nil, fieldAssignmentEndpoints, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(header)+endpoints))
	return append(b, header...)
}

// Compare orders groups by locality, then score.
func (g LocalityGroup) Compare(o LocalityGroup) int {
	return cmp.Or(cmp.Compare(g.Locality.String(), o.Locality.String()), cmp.Compare(g.Score, o.Score))
}

// EndpointEncoder encodes endpoints of one form. It remembers the metadata of the workloads that it has met.
type EndpointEncoder struct {
	Form EndpointForm

	metadata map[metadataAt][]byte
}

// metadataAt is a workload and whether its endpoints are marked for mutual TLS.
type metadataAt struct {
	identity unique.Handle[value.Identity]
	mutual   bool
}

// Encode returns the endpoints as a run of fields of a locality. What they say of their workload is encoded once for
// each workload.
func (enc *EndpointEncoder) Encode(endpoints []EndpointKey) []byte {
	var out []byte
	for _, e := range endpoints {
		body, metadata := Marshal(LbEndpoint(e)), enc.metadataOf(e.Endpoint.Identity, enc.Form.of(e))
		out = protowire.AppendTag(out, fieldLocalityEndpoints, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(len(body)+len(metadata)))
		out = append(append(out, body...), metadata...)
	}
	return out
}

// metadataOf returns the encoded field of the metadata of a workload's endpoints of one form.
func (enc *EndpointEncoder) metadataOf(id unique.Handle[value.Identity], form EndpointForm) []byte {
	at := metadataAt{id, form.MutualTLS}
	if b, ok := enc.metadata[at]; ok {
		return b
	}
	if enc.metadata == nil {
		enc.metadata = map[metadataAt][]byte{}
	}
	b := protowire.AppendTag(nil, fieldEndpointMetadata, protowire.BytesType)
	b = protowire.AppendBytes(b, MarshalSorted(EndpointMetadata(EndpointMetadataKey{id.Value(), form})))
	enc.metadata[at] = b
	return b
}
