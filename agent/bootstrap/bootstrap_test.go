package bootstrap

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pilotd/pilotd/agent/pod"
)

// read reads a pod with these annotations, settings and addresses.
func read(t *testing.T, annotations, config string, ips ...string) *pod.Pod {
	t.Helper()
	s := pod.Source{Kind: pod.Sidecar, Files: fstest.MapFS{"etc/istio/pod/annotations": {Data: []byte(annotations)},
		"etc/istio/pod/labels": {Data: []byte(`app="web"`)}},
		Env: pod.NewEnv([]string{"POD_NAME=web", "POD_NAMESPACE=shop", "PROXY_CONFIG=" + config, "HOST_IP=fd00::9"})}
	for _, ip := range append(ips, "127.0.0.1") {
		s.Addresses = append(s.Addresses, netip.MustParseAddr(ip))
	}
	p, err := pod.Read(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each setting of the pod is in the bootstrap, which is the same each time.
func TestNew(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, config string
		ips                 []string
		sotw                bool
		want                []string
		not                 []string
	}{
		"plain": {ips: []string{"10.1.1.1"}, want: []string{`"id":"sidecar~10.1.1.1~web.shop~shop.svc.cluster.local"`,
			`"cluster":"web.shop"`, `"api_type":"DELTA_GRPC"`, `"path":"/xds"`, `"path":"/sds"`, `"port_value":15021`,
			`"port_value":15090`, `"address":"0.0.0.0"`, `"re2.max_program_size.error_level":"32768"`, `"tag_name":"cluster_name"`,
			`"tag_name":"authz_enforce_result"`},
			not: []string{"tracing\"", `"::"`}},
		"SotW": {ips: []string{"10.1.1.1"}, sotw: true, want: []string{`"api_type":"GRPC"`}},
		"ports": {ips: []string{"10.1.1.1"}, config: "{proxyAdminPort: 15099, statusPort: 15098}",
			want: []string{`"port_value":15099`, `"port_value":15098`}, not: []string{`"port_value":15000`}},
		"no status port": {ips: []string{"10.1.1.1"}, config: "statusPort: 0", not: []string{`"port_value":15021`}},
		"IPv6":           {ips: []string{"fd00::1"}, want: []string{`"address":"::1"`, `"address":"::"`}, not: []string{`0.0.0.0`}},
		"dual stack": {ips: []string{"10.1.1.1", "fd00::1"}, want: []string{`"address":"::","port_value":15090,"ipv4_compat":true`,
			`"address":"127.0.0.1"`}},
		"zipkin": {ips: []string{"10.1.1.1"}, config: "tracing: {zipkin: {address: 'zipkin.obs:9411'}}",
			want: []string{`"name":"zipkin","type":"STRICT_DNS"`, `"collector_cluster":"zipkin"`, `"dns_lookup_family":"V4_ONLY"`}},
		"old zipkin": {ips: []string{"10.1.1.1"}, config: "zipkinAddress: '10.9.9.9:9411'",
			want: []string{`"name":"envoy.tracers.zipkin"`, `"address":"10.9.9.9"`}},
		"datadog of the node": {ips: []string{"10.1.1.1"}, config: "tracing: {datadog: {address: '$(HOST_IP):8126'}}",
			want: []string{`"service_name":"web.shop"`, `"address":"fd00::9"`}},
		"statistics": {ips: []string{"10.1.1.1"},
			config: "{extraStatTags: [b, a], proxyStatsMatcher: {inclusionPrefixes: [p1]}, statsCompression: false}",
			annotations: "sidecar.istio.io/statsInclusionSuffixes=\"s1, s2\"\nsidecar.istio.io/statsInclusionRegexps=\"r.*\"\n" +
				"sidecar.istio.io/extraStatTags=\"c,a\"\nsidecar.istio.io/statsHistogramBuckets=\"{\\\"istiocustom\\\":[1,5]}\"\n",
			want: []string{`"prefix":"p1"`, `"suffix":"s1"`, `"suffix":"s2"`, `"regex":"r.*"`, `"tag_name":"a"`,
				`"tag_name":"b"`, `"tag_name":"c"`, `"buckets":[1,5]`}, not: []string{"compressor"}},
		"runtime": {ips: []string{"10.1.1.1"}, config: "runtimeValues: {a: b, re2.max_program_size.error_level: ''}",
			want: []string{`"a":"b"`}, not: []string{`{"re2.max_program_size.error_level"`, `,"re2.max_program_size.error_level":"32`}},
	} {
		in := Input{Pod: read(t, c.annotations, c.config, c.ips...), XDS: "/xds", SDS: "/sds", SotW: c.sotw, OutlierLog: "/log"}
		b, err := New(in)
		if err != nil {
			t.Fatal(name, err)
		}
		text := compact(t, in)
		if !bytes.Equal(text, compact(t, in)) {
			t.Error(name, "differs from time to time")
		}
		if b.ClusterManager.GetOutlierDetection().GetEventLogPath() != "/log" {
			t.Error(name, b.ClusterManager)
		}
		for _, want := range c.want {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%s: no %s in %s", name, want, text)
			}
		}
		for _, not := range c.not {
			if bytes.Contains(text, []byte(not)) {
				t.Errorf("%s: %s in %s", name, not, text)
			}
		}
	}
}

func compact(t *testing.T, in Input) []byte {
	t.Helper()
	b, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := JSON(b)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What cannot be used is refused by its name.
func TestBad(t *testing.T) {
	for want, config := range map[string]string{"tracing": "zipkinAddress: zipkin", "statsHistogramBuckets": ""} {
		annotations := ""
		if config == "" {
			annotations = `sidecar.istio.io/statsHistogramBuckets="x"`
		}
		if _, err := New(Input{Pod: read(t, annotations, config, "10.1.1.1")}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Error(want, err)
		}
	}
}

func TestGRPC(t *testing.T) {
	text, err := GRPC(read(t, "", "", "10.1.1.1"), "/s", "/certs")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Servers []struct {
			URI string `json:"server_uri"`
		} `json:"xds_servers"`
		Node struct{ ID string }
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Servers[0].URI != "unix:///s" ||
		got.Node.ID != "sidecar~10.1.1.1~web.shop~shop.svc.cluster.local" {
		t.Error(got, err)
	}
}
