package discovery

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestConfigDump: the page shows what a client was sent in the form of Envoy's own dump, also what is inside filters
// that this build has no types for; endpoints only on request; and says what was wrong with a bad request.
func TestConfigDump(t *testing.T) {
	r := startRun(t)
	defer r.stop()
	r.server.Store.Apply([]ingest.Event{{Source: "test", Key: value.ObjectKey{Kind: value.KindMeshConfig,
		Namespace: "istio-system", Name: "istio"}, Object: "connectTimeout: 3s\n"}})
	r.connect(nodeOf(0), true)
	r.settle()
	ask := func(query string) (string, error) {
		content, err := r.server.configDump(httptest.NewRequest("GET", "/debug/config_dump"+query, nil))
		b, _ := json.Marshal(content)
		return string(b), err
	}
	got, err := ask("?proxyID=pod-1.shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"envoy.admin.v3.ClustersConfigDump", "PassthroughCluster", `"connectTimeout":"3s"`,
		"virtualInbound", "envoy.admin.v3.RoutesConfigDump"} {
		if !strings.Contains(got, want) {
			t.Errorf("the dump lacks %s", want)
		}
	}
	if strings.Contains(got, "EndpointsConfigDump") {
		t.Error("endpoints without include_eds")
	}
	if got, err := ask("?proxyID=pod-1.shop&include_eds"); err != nil || !strings.Contains(got, "EndpointsConfigDump") {
		t.Errorf("include_eds: %v", err)
	}
	for query, want := range map[string]string{"": "proxyID is missing", "?proxyID=nobody": "no such proxy"} {
		if _, err := ask(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", query, err, want)
		}
	}
}
