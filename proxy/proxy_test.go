package proxy

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// node returns a Node with texts as its metadata, and extensions by the types of their configuration.
func node(id string, metadata map[string]string, extensions ...string) *corev3.Node {
	n := &corev3.Node{Id: id, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{}}}
	for k, v := range metadata {
		n.Metadata.Fields[k] = structpb.NewStringValue(v)
	}
	for _, t := range extensions {
		n.Extensions = append(n.Extensions, &corev3.Extension{TypeUrls: []string{t}})
	}
	return n
}

// Accept takes what the metadata says before what the id says.
func TestAcceptReadsTheNode(t *testing.T) {
	n := node("sidecar~10.0.0.9~web-1.shop~shop.svc.cluster.local", map[string]string{"CLUSTER_ID": "east",
		"INSTANCE_IPS": " 10.0.0.1 , fd00::1,", "NETWORK": "n1", "NODE_NAME": "k1", "SERVICE_ACCOUNT": "web",
		"ISTIO_VERSION": "1.25.0", "NAMESPACE": "store", "INTERCEPTION_MODE": "TPROXY", "HTTP10": "1"})
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{
		Fields: map[string]*structpb.Value{"app": structpb.NewStringValue("web")}})
	n.Locality = &corev3.Locality{Region: "r", Zone: "z", SubZone: "s"}
	got, err := Accept(n, Peer{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Proxy{ID: n.Id, Name: "web-1", Namespace: "store", ClusterID: "east", Version: "1.25.0",
		Addresses: []string{"10.0.0.1", "fd00::1"}, Labels: PackLabels(value.Labels{"app": "web"}),
		Locality: value.Locality{Region: "r", Zone: "z", SubZone: "s"}, Node: "k1", Network: "n1", Account: "web",
		Traits: value.Traits{Filters: value.AllFilters, Interception: value.TProxy, IPv4: true, IPv6: true,
			HTTP10: true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	got, err = Accept(node("sidecar~10.0.0.9~web-1.shop~x", nil), Peer{})
	if err != nil || got.Namespace != "shop" || got.Addresses[0] != "10.0.0.9" {
		t.Errorf("without metadata: %+v, %v", got, err)
	}
}

// A trait is set only where something can depend on it, so that it splits no other classes.
func TestTraitsThatNothingReadsAreNotSet(t *testing.T) {
	resolver := []string{"envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig",
		"envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig"}
	for _, c := range []struct {
		name, kind string
		metadata   map[string]string
		extensions []string
		want       value.Traits
	}{
		{"unprivileged sidecar", "sidecar", map[string]string{"UNPRIVILEGED_POD": "true"}, nil,
			value.Traits{Filters: value.AllFilters}},
		{"unprivileged router", "router", map[string]string{"UNPRIVILEGED_POD": "true"}, nil,
			value.Traits{Type: value.Router, Filters: value.AllFilters, Unprivileged: true}},
		{"capture by a router", "router", map[string]string{"DNS_CAPTURE": "true"}, resolver,
			value.Traits{Type: value.Router, Filters: value.DynamicForwardProxy}},
		{"capture by a sidecar", "sidecar", map[string]string{"DNS_CAPTURE": "true"}, resolver,
			value.Traits{Filters: value.DynamicForwardProxy, DNSCapture: true}},
		{"capture without a resolver", "sidecar", map[string]string{"DNS_CAPTURE": "true"}, []string{"other"},
			value.Traits{}},
		{"grpc", "sidecar", map[string]string{"GENERATOR": "grpc"}, []string{"other"},
			value.Traits{Type: value.Proxyless}},
	} {
		c.want.IPv4 = true
		p, err := Accept(node(c.kind+"~10.0.0.1~a.b~c", c.metadata, c.extensions...), Peer{})
		if err != nil || p.Traits != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, p, err, c.want)
		}
	}
}

// A Node that names no proxy is refused with a line that says what is expected.
func TestAcceptRefuses(t *testing.T) {
	for id, want := range map[string]string{
		"":                      "want type~ip~pod.namespace~domain",
		"sidecar~10.0.0.1~a.b":  "want type~ip~pod.namespace~domain",
		"sidecar~~a.b~c":        "want at least one",
		"ztunnel~10.0.0.1~a.~c": `type "ztunnel" is not served`,
	} {
		if _, err := Accept(node(id, nil), Peer{}); !errors.Is(err, ErrNode) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", id, err, want)
		}
	}
	if _, err := Accept(nil, Peer{}); !errors.Is(err, ErrNode) {
		t.Errorf("no node: %v", err)
	}
}
