package pod

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protojson"
)

// web is a pod as injection writes it.
func web() Source {
	return Source{Kind: Sidecar, Domain: "shop.svc.cluster.local",
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fe80::1"),
			netip.MustParseAddr("fd00::7"), netip.MustParseAddr("10.1.0.7")},
		Env: NewEnv([]string{"POD_NAME=web-1", "POD_NAMESPACE=shop", "INSTANCE_IP=10.1.0.7", "SERVICE_ACCOUNT=web",
			"TRUST_DOMAIN=td", `PROXY_CONFIG={"concurrency":3,"proxyMetadata":{"A":"1"}}`, "ISTIO_META_CLUSTER_ID=Kubernetes",
			`ISTIO_METAJSON_MORE={"NETWORK":"n1"}`, "ISTIO_META_DNS_CAPTURE=true", "ISTIO_META_MESH_ID=m"}),
		Files: fstest.MapFS{
			labelsFile:      {Data: []byte("app=\"web\"\npod-template-hash=\"5\"\nistio-locality=\"r1.z1.s1\"\nv=\"a\\\"b\"\n")},
			annotationsFile: {Data: []byte("istio.io/rev=\"canary\"\nproxy.istio.io/config=\"concurrency: 5\\nstatusPort: 15099\"\n")},
			meshFile:        {Data: []byte("defaultConfig: {concurrency: 1, drainDuration: 7s, proxyMetadata: {A: '0', B: '2'}}")},
		},
	}
}

// What a pod says comes together in its node, and the nearest setting wins.
func TestPod(t *testing.T) {
	p, err := Read(web())
	if err != nil {
		t.Fatal(err)
	}
	c := p.Config
	if c.Concurrency.GetValue() != 5 || c.DrainDuration.GetSeconds() != 7 || c.StatusPort != 15099 ||
		c.ProxyMetadata["A"] != "1" || c.ProxyMetadata["B"] != "2" || c.ProxyAdminPort != 15000 {
		t.Error(c)
	}
	if p.IPv6Only() || !p.DualStack() {
		t.Error(p.IPs)
	}
	n, err := p.Node()
	if err != nil {
		t.Fatal(err)
	}
	if n.Id != "sidecar~10.1.0.7~web-1.shop~shop.svc.cluster.local" || n.Cluster != "web.shop" ||
		n.Locality.GetZone() != "z1" || n.Locality.GetSubZone() != "s1" {
		t.Error(n.Id, n.Cluster, n.Locality)
	}
	text, err := protojson.Marshal(n.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	labels, _ := m["LABELS"].(map[string]any)
	if m["INSTANCE_IPS"] != "10.1.0.7,fd00::7" || m["NETWORK"] != "n1" || m["DNS_CAPTURE"] != "true" ||
		m["ENVOY_STATUS_PORT"] != 15021.0 || m["ISTIO_REVISION"] != "canary" || m["MESH_ID"] != "m" ||
		labels["v"] != `a"b` || labels["pod-template-hash"] != nil {
		t.Error(string(text))
	}
}

// Ports and the socket are those of the environment, in the node too; a port that is none is an error.
func TestPortsOfTheEnvironment(t *testing.T) {
	s := web()
	s.Env.vars["ENVOY_STATUS_PORT"], s.Env.vars["ENVOY_PROMETHEUS_PORT"] = "16021", "16090"
	s.Env.vars["WORKLOAD_IDENTITY_SOCKET_FILE"] = "other"
	p, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	n, err := p.Node()
	if err != nil {
		t.Fatal(err)
	}
	m := n.Metadata.GetFields()
	if p.ReadyPort() != 16021 || p.PrometheusPort() != 16090 || p.SecretSocket() != "other" ||
		m["ENVOY_STATUS_PORT"].GetNumberValue() != 16021 || m["ENVOY_PROMETHEUS_PORT"].GetNumberValue() != 16090 ||
		m["WORKLOAD_IDENTITY_SOCKET_FILE"].GetStringValue() != "other" {
		t.Error(m)
	}
	s.Env.vars["ENVOY_STATUS_PORT"] = "0"
	p.ReadyPort()
	if err := p.Env.Err(); err == nil || !strings.Contains(err.Error(), "ENVOY_STATUS_PORT") {
		t.Error(err)
	}
}

// TestIgnoredVariables has what no variable does told, but where it asks for what is done anyway, and documented.
func TestIgnoredVariables(t *testing.T) {
	page, err := os.ReadFile("../../docs/agent.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range ignored() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/agent.md does not name %s", name)
		}
		s := web()
		s.Env.vars[name] = "odd"
		p, err := Read(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], name+" has no effect: ") {
			t.Errorf("%s: %q", name, p.Warnings)
		}
	}
	s := web()
	s.Env.vars["JWT_POLICY"], s.Env.vars["CREDENTIAL_FETCHER_TYPE"], s.Env.vars["STS_PORT"] = "third-party-jwt", "JWT", "0"
	if p, err := Read(s); err != nil || len(p.Warnings) > 0 {
		t.Error(err, p.Warnings)
	}
}

// What cannot be read is an error that names it, and what has no effect is a warning that does.
func TestBadSettings(t *testing.T) {
	for want, change := range map[string]func(*Source){
		"POD_NAME":                      func(s *Source) { s.Env.vars["POD_NAME"] = "" },
		"PROXY_CONFIG":                  func(s *Source) { s.Env.vars["PROXY_CONFIG"] = "[" },
		"proxy.istio.io/config":         func(s *Source) { s.Files.(fstest.MapFS)[annotationsFile].Data = []byte(`proxy.istio.io/config="x: ["`) },
		`etc/istio/pod/labels: "app"`:   func(s *Source) { s.Files.(fstest.MapFS)[labelsFile].Data = []byte("app=web") },
		"statusPort":                    func(s *Source) { s.Env.vars["PROXY_CONFIG"] = "proxyAdminPort: 1\nstatusPort: 99999" },
		"INSTANCE_IP":                   func(s *Source) { s.Env.vars["INSTANCE_IP"] = "here" },
		"no address":                    func(s *Source) { s.Env.vars["INSTANCE_IP"], s.Addresses = "", nil },
		"SECRET_TTL":                    func(s *Source) { s.Env.vars["SECRET_TTL"] = "1"; s.Env.Duration("SECRET_TTL", 0) },
		"sidecar or router":             func(s *Source) { s.Kind = "ingress" },
		"WORKLOAD_IDENTITY_SOCKET_FILE": func(s *Source) { s.Env.vars["WORKLOAD_IDENTITY_SOCKET_FILE"] = "../socket" },
		"METAJSON_MORE":                 func(s *Source) { s.Env.vars["ISTIO_METAJSON_MORE"] = "x" },
	} {
		s := web()
		if want == "statusPort" {
			delete(s.Files.(fstest.MapFS), annotationsFile)
		}
		change(&s)
		p, err := Read(s)
		if err == nil {
			_, err = p.Node()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v", want, err)
		}
	}
	s := web()
	s.Env.vars["STS_PORT"], s.Env.vars["PROXY_CONFIG"] = "15463", "{ofTomorrow: 1, statsdUdpAddress: a:1}"
	p, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"STS_PORT", "ofTomorrow", "statsdUdpAddress"} {
		if !strings.Contains(strings.Join(p.Warnings, "\n"), want) {
			t.Errorf("no warning of %s: %q", want, p.Warnings)
		}
	}
}

func TestServerName(t *testing.T) {
	for in, want := range map[string]string{"istiod.x.svc:15012": "istiod.x.svc", "localhost:1": "istiod.istio-system.svc",
		"[fd00::1]:15012": "fd00::1", "10.1.1.1:15012": "10.1.1.1"} {
		if got := ServerName(in, ""); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
		if got := ServerName(in, "other"); got != "other" {
			t.Error(got)
		}
	}
}
