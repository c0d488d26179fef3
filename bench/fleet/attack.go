package fleet

import (
	"bytes"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2/hpack"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/xdstype"
)

const (
	// largest is the size of the largest requests, a little below the usual limit.
	largest = 4<<20 - 1024
	// chosenNames is the number of names in the request of an idle client, keptVersions that in the request of a client
	// that comes back.
	chosenNames, keptVersions = 190_000, 100_000
)

// hostileRequests are the requests of hostile clients. The parts that are equal for all are encoded once. Immutable.
type hostileRequests struct {
	chosen   []byte   // encoded names, chosen so that none of them ends a chunk
	initial  []byte   // encoded initial_resource_versions
	refusal  [][]byte // a NACK of clusters
	opening  []byte   // the encoded headers of a stream
	zeros    []byte
	labels   map[string]any
	metadata string // text for a node's metadata, which pilotd does not read
}

func newHostileRequests() *hostileRequests {
	r := &hostileRequests{zeros: make([]byte, 16<<10), labels: map[string]any{}, metadata: strings.Repeat("m", 400<<10)}
	names := make([]string, 0, chosenNames)
	for i := 0; len(names) < chosenNames; i++ {
		if name := fmt.Sprintf("k%07d-%04d", i, i%1000); !endsChunk(name) {
			names = append(names, name)
		}
	}
	r.chosen = encoded(&discoveryv3.DiscoveryRequest{ResourceNames: names})
	versions := map[string]string{}
	for _, name := range names[:keptVersions] {
		versions[name] = "0123456789abcdef"
	}
	r.initial = encoded(&discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: versions})
	r.refusal = [][]byte{encoded(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ClusterURL, ResponseNonce: "1",
		ErrorDetail: &statuspb.Status{Code: 13, Message: strings.Repeat("no\n", 300<<10)}})}
	for i := range 250 {
		r.labels[fmt.Sprintf("label-%d-%s", i, strings.Repeat("k", 50))] = strings.Repeat("v", 60)
	}
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "hostile"},
		{":path", "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // writing to a Buffer cannot fail
	}
	r.opening = block.Bytes()
	return r
}

// endsChunk reports whether a key with this name ends a chunk. It repeats the rule of package snapshot/chunked and must
// change with it.
func endsChunk(key string) bool {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return (h>>33)%64 == 0
}

func encoded(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // every string here is valid UTF-8
	}
	return b
}

// node returns a node of client i with the longest id and the most metadata that pilotd accepts. Each n except 0 gives
// a class of its own.
func (r *hostileRequests) node(i, n int) *corev3.Node {
	md, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": fmt.Sprintf("hostile-%d-%d", i, n), "CLUSTER_ID": strings.Repeat("c", 250),
		"NETWORK": strings.Repeat("n", 250), "LABELS": r.labels,
		"ISTIO_VERSION": "1.30.0", "ANNOTATIONS": r.metadata,
	})
	if err != nil {
		panic(err) // cannot fail for strings and maps of strings
	}
	id := fmt.Sprintf("sidecar~10.%d.%d.%d~", i%250, n%250, n/250%250)
	end := fmt.Sprintf("-%d-%d.hostile~hostile.svc.cluster.local", i, n)
	return &corev3.Node{Id: id + strings.Repeat("x", 1000-len(id)-len(end)) + end, Metadata: md,
		Locality: &corev3.Locality{Region: strings.Repeat("r", 250), Zone: strings.Repeat("z", 250),
			SubZone: strings.Repeat("s", 250)}}
}

// names subscribes to the chosen names, and one that no other client has.
func (r *hostileRequests) names(i int) [][][]byte {
	own := &discoveryv3.DiscoveryRequest{Node: r.node(i, 0),
		TypeUrl:       xdstype.EndpointURL,
		ResourceNames: []string{fmt.Sprint("own-", i)}}
	own.Node.Metadata.Fields["ANNOTATIONS"] = structpb.NewStringValue("")
	return [][][]byte{{encoded(own), r.chosen}}
}

// clusters subscribes to clusters with node n of client i.
func (r *hostileRequests) clusters(i, n int) [][][]byte {
	return [][][]byte{{encoded(&discoveryv3.DiscoveryRequest{Node: r.node(i, n), TypeUrl: xdstype.ClusterURL})}}
}

// types subscribes to many types, with one name of each.
func (r *hostileRequests) types(i int) (out [][][]byte) {
	for t := range 40 {
		m := &discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprintf("%s-%d-%d", strings.Repeat("t", 200), i, t),
			ResponseNonce: strings.Repeat("n", 250),
			VersionInfo:   strings.Repeat("v", 100<<10)}
		for k := range 20 {
			m.ResourceNames = append(m.ResourceNames, fmt.Sprintf("%s-%d-%d-%d", strings.Repeat("k", 4000), i, t, k))
		}
		if t == 0 {
			m.Node = r.node(i, 0)
		}
		out = append(out, [][]byte{encoded(m)})
	}
	return out
}

// versions comes back with versions of many clusters that do not exist.
func (r *hostileRequests) versions(i int) [][][]byte {
	first := &discoveryv3.DeltaDiscoveryRequest{Node: r.node(i, 0), TypeUrl: xdstype.ClusterURL}
	first.Node.Metadata.Fields["ANNOTATIONS"] = structpb.NewStringValue("")
	refusal := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ClusterURL, ResponseNonce: "1",
		ErrorDetail: &statuspb.Status{Code: 13, Message: "no"}}
	return [][][]byte{{encoded(first), r.initial}, {encoded(refusal)}}
}

// two returns two requests of a new client.
func (r *hostileRequests) two(i, n int) [][][]byte {
	return append(r.clusters(i, n),
		[][]byte{encoded(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ListenerURL})})
}
