package gen_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unique"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// clusterMesh returns a mesh with the defaults that clusters read, and what the YAML text sets.
func clusterMesh(t testing.TB, text string) *value.Mesh {
	t.Helper()
	m := &meshconfig.MeshConfig{
		ConnectTimeout: durationpb.New(10 * time.Second), DnsRefreshRate: durationpb.New(time.Minute),
		EnableAutoMtls:    wrapperspb.Bool(true),
		LocalityLbSetting: &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(true)},
	}
	fromYAML(t, text, m)
	return istio.Mesh(m, "cluster.local", "c1")
}

// clusterRule returns a DestinationRule with that spec; nil for an empty one.
func clusterRule(t testing.TB, text string) *value.DestinationRule {
	t.Helper()
	if text == "" {
		return nil
	}
	spec := &networking.DestinationRule{}
	fromYAML(t, text, spec)
	return &value.DestinationRule{Meta: value.Meta{Namespace: "shop", Name: "rule"}, DestinationPolicy: istio.Policy(spec)}
}

func fromYAML(t testing.TB, text string, into interface{ Reset() }) {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if string(b) == "null" {
		return
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func clusterService(protocol value.Protocol) *value.Service {
	return &value.Service{
		ServiceKey: value.ServiceKey{Host: "books.shop.svc.cluster.local", Namespace: "shop"}, Name: "books",
		Ports: []*value.Port{{Name: "p", Number: 80, Protocol: protocol}},
	}
}

func speaks(tls string, addresses ...string) *value.Projection {
	p := &value.Projection{Any: true, ServiceAccounts: []string{"td/ns/shop/sa/books"}}
	if tls == "istio" {
		p.MutualTLS = []string{"p"}
	}
	id := unique.Make(value.Identity{Namespace: "shop", Workload: "books", TLSMode: tls, Cluster: "c1",
		LabelsKey: "app=books,version=v1"})
	for _, a := range addresses {
		p.Inline = append(p.Inline, &value.Endpoint{
			Addresses: []string{a}, Ports: []value.EndpointPort{{Name: "p", Port: 8080}}, Identity: id,
			Labels:   value.Labels{"version": "v1"},
			Locality: value.Locality{Region: "r1", Zone: "z1"}, Weight: 1, Health: value.HealthUnknown})
	}
	return p
}

func clusterKey(t testing.TB, mesh, rule, subset string) gen.ClusterKey {
	s := clusterService(value.HTTP)
	return gen.ClusterKey{Mesh: clusterMesh(t, mesh).Clusters, Service: s, Port: s.Ports[0], Projection: speaks("istio"),
		Rule: clusterRule(t, rule), Subset: subset,
		Client: gen.ClusterClient{Filters: value.AllFilters}}
}

// valid fails the test if Envoy's own validation refuses c.
func valid(t testing.TB, c *clusterpb.Cluster) *clusterpb.Cluster {
	t.Helper()
	if err := c.ValidateAll(); err != nil {
		t.Errorf("%s: %v", c.GetName(), err)
	}
	return c
}

// fieldsOf returns some fields of c as JSON, one a line; fields of messages inside are reached with dots.
func fieldsOf(t testing.TB, c *clusterpb.Cluster, fields ...string) string {
	t.Helper()
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range fields {
		var v any = all
		for part := range strings.SplitSeq(f, "/") {
			m, _ := v.(map[string]any)
			v = m[part]
		}
		text, _ := json.Marshal(v)
		var short bytes.Buffer
		if err := json.Compact(&short, text); err != nil {
			t.Fatal(err)
		}
		out = append(out, f+" "+strings.ReplaceAll(short.String(), `"`, ""))
	}
	return strings.Join(out, "\n")
}

const httpOptions = "typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// Each row: what the rule says, the fields to look at, and what they must be.
func TestClusterPolicy(t *testing.T) {
	rows := []struct{ name, mesh, rule, subset, want string }{
		{"nothing said", "", "", "", `
lb_policy LEAST_REQUEST
outlier_detection null
connect_timeout 10s
common_lb_config {healthy_panic_threshold:{}}
` + httpOptions + ` null`},
		{"port over rule", "",
			`{trafficPolicy: {loadBalancer: {simple: RANDOM}, connectionPool: {tcp: {connectTimeout: 1s}},
			portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: ROUND_ROBIN}}]}}`,
			"", `
lb_policy null
connect_timeout 10s`},
		{"another port's settings", "",
			`{trafficPolicy: {loadBalancer: {simple: RANDOM}, portLevelSettings: [{port: {number: 81}, loadBalancer: {simple: ROUND_ROBIN}}]}}`,
			"", `
lb_policy RANDOM`},
		{"subset over rule, part by part", "",
			`{trafficPolicy: {loadBalancer: {simple: RANDOM}, connectionPool: {tcp: {connectTimeout: 1s}}},
			subsets: [{name: a, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}]}`, "a", `
lb_policy null
connect_timeout 1s
eds_cluster_config/service_name outbound|80|a|books.shop.svc.cluster.local`},
		{"port of subset over all", "", `{trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}},
			subsets: [{name: a, trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}}]}}]}`,
			"a", `
lb_policy RANDOM
connect_timeout 10s`},
		{"mesh below rule", `{defaultTrafficPolicy: {connectionPool: {tcp: {connectTimeout: 3s}}, outlierDetection: {interval: 7s}}}`,
			`{trafficPolicy: {outlierDetection: {interval: 2s}}}`, "", `
connect_timeout 3s
outlier_detection {enforcing_success_rate:0,interval:2s}`},
		{"subset that is not there", "", `{trafficPolicy: {loadBalancer: {simple: RANDOM}}}`, "gone", `
lb_policy RANDOM`},
		{"warmup", "", `{trafficPolicy: {loadBalancer: {warmup: {duration: 9s}}}}`, "", `
lb_policy LEAST_REQUEST
least_request_lb_config {slow_start_config:{aggression:{default_value:1,runtime_key:(},min_weight_percent:{value:10},slow_start_window:9s}}`},
		{"old warmup", "", `{trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN, warmupDurationSecs: 9s}}}`, "", `
round_robin_lb_config {slow_start_config:{slow_start_window:9s}}`},
		{"ring of its own size", "",
			`{trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 77}}}}}`,
			"", `
lb_policy RING_HASH
ring_hash_lb_config {minimum_ring_size:77}`},
		{"ring", "", `{trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {}}}}}`, "", `
lb_policy RING_HASH
ring_hash_lb_config null`},
		{"maglev", "", `{trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, maglev: {}}}}}`, "", `
lb_policy MAGLEV
maglev_lb_config null`},
		{"passthrough", "", `{trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}}`, "", `
type ORIGINAL_DST
lb_policy CLUSTER_PROVIDED
eds_cluster_config null
transport_socket_matches null`},
		{"outlier limits of zero are off", "",
			`{trafficPolicy: {outlierDetection: {consecutive5xxErrors: 0, consecutiveGatewayErrors: 4, minHealthPercent: 10}}}`,
			"", `
outlier_detection {consecutive_5xx:0,consecutive_gateway_failure:4,enforcing_consecutive_5xx:0,enforcing_consecutive_gateway_failure:100,enforcing_success_rate:0}
common_lb_config {healthy_panic_threshold:{value:10}}`},
		{"local origin", "", `{trafficPolicy: {outlierDetection: {splitExternalLocalOriginErrors: true}}}`, "", `
outlier_detection {enforcing_local_origin_success_rate:0,enforcing_success_rate:0,split_external_local_origin_errors:true}`},
		{"failover needs outlier detection", `{localityLbSetting: {failover: [{from: a, to: b}]}}`, "", "", `
common_lb_config {healthy_panic_threshold:{}}`},
		{"failover", `{localityLbSetting: {failover: [{from: a, to: b}]}}`, `{trafficPolicy: {outlierDetection: {}}}`,
			"", `
common_lb_config {healthy_panic_threshold:{},locality_weighted_lb_config:{}}`},
		{"failover turned off by the rule", `{localityLbSetting: {failover: [{from: a, to: b}]}}`,
			`{trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {enabled: false}}}}`, "", `
common_lb_config {healthy_panic_threshold:{}}`},
		{"distribution", "",
			`{trafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: "a/*", to: {"b/*": 100}}]}}}}`, "", `
common_lb_config {healthy_panic_threshold:{},locality_weighted_lb_config:{}}`},
		{"h2 by the mesh", `{h2UpgradePolicy: UPGRADE}`, "", "",
			httpOptions + `/explicit_http_config {http2_protocol_options:{}}`},
		{"h2 by the mesh, not by the rule", `{h2UpgradePolicy: UPGRADE}`,
			`{trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: DO_NOT_UPGRADE}}}}`, "", httpOptions + ` null`},
		{"client's protocol", `{h2UpgradePolicy: UPGRADE}`,
			`{trafficPolicy: {connectionPool: {http: {useClientProtocol: true, idleTimeout: 1s}}}}`, "",
			httpOptions + `/use_downstream_protocol_config {http2_protocol_options:{},http_protocol_options:{}}
` + httpOptions + `/common_http_protocol_options {idle_timeout:1s}`},
		{"idle by TCP, streams without HTTP/2", "",
			`{trafficPolicy: {connectionPool: {tcp: {idleTimeout: 4s}, http: {maxConcurrentStreams: 5}}}}`, "",
			httpOptions + `/explicit_http_config {http_protocol_options:{}}
` + httpOptions + `/common_http_protocol_options {idle_timeout:4s}`},
		{"pings of HTTP/2", "",
			`{trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 5s, timeout: 2s}}}}}`,
			"",
			httpOptions + `/explicit_http_config {http2_protocol_options:{connection_keepalive:{interval:5s,timeout:2s}}}`},
		{"retry budget", "", `{trafficPolicy: {retryBudget: {minRetryConcurrency: 7, budgetInterval: 1s}}}`, "", `
circuit_breakers {thresholds:[{max_connections:4294967295,max_pending_requests:4294967295,max_requests:4294967295,max_retries:4294967295,` +
			`retry_budget:{budget_interval:1s,budget_percent:{value:20},min_retry_concurrency:7}}]}`},
		{"a port's settings have no retry budget", "",
			`{trafficPolicy: {retryBudget: {}, portLevelSettings: [{port: {number: 80}}]}}`, "", `
circuit_breakers {thresholds:[{max_connections:4294967295,max_pending_requests:4294967295,max_requests:4294967295,max_retries:4294967295}]}`},
		{"keepalive: rule over mesh", `{tcpKeepalive: {time: 60s, probes: 2}}`,
			`{trafficPolicy: {connectionPool: {tcp: {tcpKeepalive: {interval: 5s, probes: 9}}}}}`, "", `
upstream_connection_options {tcp_keepalive:{keepalive_interval:5,keepalive_probes:9,keepalive_time:60}}`},
		{"keepalive, the system's", "", `{trafficPolicy: {connectionPool: {tcp: {tcpKeepalive: {}}}}}`, "", `
upstream_connection_options {tcp_keepalive:{}}`},
		{"stat name", `{outboundClusterStatName: "%SERVICE%_%SERVICE_PORT%_%SERVICE_PORT_NAME%_%SUBSET_NAME%"}`,
			`{subsets: [{name: a}]}`, "a", `
alt_stat_name books.shop_80_p_a;`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := valid(t, gen.Cluster(clusterKey(t, r.mesh, r.rule, r.subset)))
			want := strings.TrimSpace(r.want)
			var fields []string
			for l := range strings.SplitSeq(want, "\n") {
				f, _, _ := strings.Cut(l, " ")
				fields = append(fields, f)
			}
			if got := fieldsOf(t, c, fields...); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestDetectedPortIsNotUpgraded: h2UpgradePolicy leaves a port whose protocol a sidecar detects with the protocol of
// the client; a router, which detects nothing, speaks HTTP/2 there.
func TestDetectedPortIsNotUpgraded(t *testing.T) {
	for client, want := range map[value.NodeType]string{
		value.SidecarProxy: httpOptions +
			"/use_downstream_protocol_config {http2_protocol_options:{},http_protocol_options:{}}",
		value.Router: httpOptions + "/explicit_http_config {http2_protocol_options:{}}",
	} {
		k := clusterKey(t, "", `{trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE}}}}`, "")
		k.Client.Type, k.Port = client, &value.Port{Name: "p", Number: 80, Protocol: value.Auto}
		field, _, _ := strings.Cut(want, " ")
		if got := fieldsOf(t, valid(t, gen.Cluster(k)), field); got != want {
			t.Errorf("client %d: got %s, want %s", client, got, want)
		}
	}
}

func TestClusterType(t *testing.T) {
	const eds, original, strict, logical = "EDS", "ORIGINAL_DST", "STRICT_DNS", "LOGICAL_DNS"
	rows := []struct {
		resolution value.Resolution
		client     value.NodeType
		projection *value.Projection
		want       string
	}{
		{value.ClientSideLB, value.SidecarProxy, nil, eds},
		{value.Passthrough, value.SidecarProxy, speaks("istio", "10.1.1.1"), original},
		{value.Passthrough, value.Router, speaks("istio", "10.1.1.1"), eds},
		{value.DNSLB, value.SidecarProxy, speaks("", "books.example"), strict},
		{value.DNSLB, value.SidecarProxy, nil, ""},
		{value.DNSRoundRobin, value.Router, speaks("", "books.example"), logical},
		{value.Alias, value.SidecarProxy, nil, ""},
		{value.ClientSideLB, value.Proxyless, nil, eds},
		{value.Passthrough, value.Proxyless, speaks("istio", "10.1.1.1"), eds},
		{value.DNSLB, value.Proxyless, speaks("", "books.example"), logical},
		{value.DNSLB, value.Proxyless, speaks("", "a.example", "b.example"), eds},
	}
	for _, r := range rows {
		k := clusterKey(t, "", "", "")
		k.Service.Resolution, k.Client.Type, k.Projection = r.resolution, r.client, r.projection
		if !gen.HasCluster(k) {
			if r.want != "" {
				t.Errorf("%+v: no cluster", r)
			}
			continue
		}
		c := valid(t, gen.Cluster(k))
		if got := c.GetType().String(); got != r.want {
			t.Errorf("%+v: %s", r, got)
		}
		if asks := gen.ClusterAsks(k); asks != (r.want == eds) || asks != (c.GetEdsClusterConfig() != nil) {
			t.Errorf("%+v: asks for endpoints: %v", r, asks)
		}
		if (c.GetLoadAssignment() != nil) != (r.want == strict || r.want == logical) {
			t.Errorf("%+v: %v", r, c.GetLoadAssignment())
		}
	}
}

// A subset of names that no endpoint has is left out; the others carry their own.
func TestSubsetsOfNames(t *testing.T) {
	k := clusterKey(t, "", `{subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}`, "v1")
	k.Service.Resolution, k.Projection = value.DNSLB, speaks("", "books.example")
	if !gen.HasCluster(k) || len(gen.Cluster(k).GetLoadAssignment().GetEndpoints()) != 1 {
		t.Error("v1 has a name")
	}
	if k.Subset = "v2"; gen.HasCluster(k) {
		t.Error("v2 has none")
	}
}

func TestTargetOfPassedConnections(t *testing.T) {
	k := clusterKey(t, "", "", "")
	k.Service.Resolution, k.Service.Registry, k.Port = value.Passthrough, value.RegistryExternal,
		&value.Port{Name: "p", Number: 80, Protocol: value.TCP, TargetPort: 8080}
	if got := fieldsOf(t, valid(t, gen.Cluster(k)),
		"original_dst_lb_config"); got != "original_dst_lb_config {upstream_port_override:8080}" {
		t.Error(got)
	}
}

func TestInboundCluster(t *testing.T) {
	s := clusterService(value.GRPC)
	k := gen.InboundClusterKey{Mesh: clusterMesh(t, "").Connections, Protocol: value.GRPC, IPv4: true,
		Rule: clusterRule(t, `{trafficPolicy: {loadBalancer: {simple: RANDOM}, tls: {mode: DISABLE}, connectionPool: {http: {maxConcurrentStreams: 3, h2UpgradePolicy: UPGRADE}}}}`)}
	names := gen.InboundClusterNames{Services: []*value.Service{s, s}, Rule: k.Rule, Target: 8080}
	c := valid(t, gen.InboundCluster(k, names))
	want := `name inbound|8080||
type ORIGINAL_DST
lb_policy CLUSTER_PROVIDED
upstream_bind_config {source_address:{address:127.0.0.6,port_value:0}}
` + httpOptions + `/explicit_http_config {http2_protocol_options:{max_concurrent_streams:3}}
metadata/filter_metadata/istio/config /apis/networking.istio.io/v1/namespaces/shop/destination-rule/rule`
	if got := fieldsOf(t, c, "name", "type", "lb_policy", "upstream_bind_config", httpOptions+"/explicit_http_config",
		"metadata/filter_metadata/istio/config"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := len(c.GetMetadata().GetFilterMetadata()["istio"].GetFields()["services"].GetListValue().GetValues()); n != 2 {
		t.Errorf("%d services", n)
	}
	mesh := clusterMesh(t, `{inboundTrafficPolicy: {mode: LOCALHOST}}`)
	k.Mesh, k.IPv4 = mesh.Connections, false
	k.Leads = gen.InboundLeads(mesh)
	c = valid(t, gen.InboundCluster(k, names))
	if got := fieldsOf(t, c, "type", "upstream_bind_config"); got != "type STATIC\nupstream_bind_config null" {
		t.Error(got)
	}
	e := c.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint()
	if a := e.GetAddress().GetSocketAddress(); a.GetAddress() != "::1" || a.GetPortValue() != 8080 {
		t.Error(a)
	}
}

func TestStaticClusters(t *testing.T) {
	k := gen.StaticClusterKey{Mesh: clusterMesh(t, `{connectTimeout: 2s}`).Connections, IPv6: true}
	for _, c := range []*clusterpb.Cluster{gen.BlackHoleCluster(k), gen.PassthroughCluster(k),
		gen.InboundPassthroughCluster(k)} {
		if got := fieldsOf(t, valid(t, c), "connect_timeout", "filters"); got != "connect_timeout 2s\nfilters null" {
			t.Errorf("%s: %s", c.GetName(), got)
		}
	}
	bind := func(k gen.StaticClusterKey) string {
		return fieldsOf(t, gen.InboundPassthroughCluster(k), "upstream_bind_config/source_address/address",
			"upstream_bind_config/extra_source_addresses")
	}
	if got := bind(k); got != "upstream_bind_config/source_address/address ::6\n"+
		"upstream_bind_config/extra_source_addresses null" {
		t.Error(got)
	}
	k.IPv4 = true
	if got := bind(k); got != "upstream_bind_config/source_address/address 127.0.0.6\n"+
		"upstream_bind_config/extra_source_addresses [{address:{address:::6,port_value:0}}]" {
		t.Error(got)
	}
}

// One content has one encoding, whatever order maps are walked in.
func TestClusterEncodesTheSame(t *testing.T) {
	k := clusterKey(t, "", `{subsets: [{name: a, trafficPolicy: {tls: {mode: SIMPLE, sni: x}}}]}`, "a")
	first := gen.MarshalSorted(gen.Cluster(k))
	for range 100 {
		if !bytes.Equal(first, gen.MarshalSorted(gen.Cluster(k))) {
			t.Fatal("two encodings")
		}
	}
}

func BenchmarkCluster(b *testing.B) {
	k := clusterKey(b, "", `{trafficPolicy: {outlierDetection: {interval: 1s}}}`, "")
	b.ReportAllocs()
	for b.Loop() {
		gen.MarshalSorted(gen.Cluster(k))
	}
}
