package chart_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/ingest"
)

// badProxyConfig is one that pilotd cannot use. Its webhook would refuse it, so it is stored before pilotd starts.
const badProxyConfig = `
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: facts, namespace: shop}
spec: {environmentVariables: {"A=B": c}}
`

// everyKind has an object of each kind of Istio's, with something that pilotd does not serve if annotated.
func everyKind(annotated bool) (text string, paths []string) {
	specs := map[string]string{
		"VirtualService":        "{hosts: [facts.example], http: [{route: [{destination: {host: facts.example}}]}]}",
		"DestinationRule":       "{host: facts.example}",
		"Gateway":               "{servers: [{port: {number: 80, name: h, protocol: HTTP}, hosts: [facts.example]}]}",
		"Sidecar":               "{workloadSelector: {labels: {app: facts}}, egress: [{hosts: [./*]}]}",
		"ServiceEntry":          "{hosts: [facts.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}",
		"WorkloadEntry":         "{address: 10.9.9.9}",
		"WorkloadGroup":         "{template: {serviceAccount: default}}",
		"AuthorizationPolicy":   "{selector: {matchLabels: {app: facts}}, rules: [{}]}",
		"PeerAuthentication":    "{selector: {matchLabels: {app: facts}}, mtls: {mode: PERMISSIVE}}",
		"RequestAuthentication": "{selector: {matchLabels: {app: facts}}}",
		"WasmPlugin":            "{selector: {matchLabels: {app: facts}}, url: oci://registry.example/a}",
		"TrafficExtension":      "{selector: {matchLabels: {app: facts}}, wasm: {url: oci://registry.example/a}}",
		"ProxyConfig":           "{concurrency: 2}",
		"EnvoyFilter":           "{workloadSelector: {labels: {app: facts}}}",
	}
	served := map[string]string{"EnvoyFilter": "v1alpha3", "WasmPlugin": "v1alpha1", "TrafficExtension": "v1alpha1",
		"ProxyConfig": "v1beta1"}
	annotations := ""
	if annotated {
		annotations = ", annotations: {istio.io/workloadController: x}"
	}
	for _, k := range ingest.Kinds() {
		if !strings.HasSuffix(k.Name.Group(), ".istio.io") {
			continue
		}
		version, spec := "v1", specs[k.APIName()]
		if v := served[k.APIName()]; v != "" {
			version = v
		}
		if spec == "" {
			spec = "{}"
		}
		if k.NotServed != "" && !k.ForInjection && !annotated {
			continue // such an object cannot be mended
		}
		paths = append(paths, fmt.Sprintf("/apis/%s/%s/namespaces/shop/%s/facts", k.Name.Group(), version, k.Plural))
		if annotated && k.ForInjection {
			continue // badProxyConfig is there already
		}
		text += fmt.Sprintf("---\napiVersion: %s/%s\nkind: %s\nmetadata: {name: facts, namespace: shop%s}\nspec: %s\n",
			k.Name.Group(), version, k.APIName(), annotations, spec)
	}
	return text, paths
}

// testFacts has an object of each kind that pilotd cannot use as it is: each gets an Event and a condition; the
// condition goes when the object is mended. None of that is a change for anybody.
func (i *installation) testFacts(t *testing.T, pilotd *parts.Pilotd) {
	cluster := parts.NewBareCluster(t, i.api)
	text, paths := everyKind(true)
	cluster.Apply(text)
	analyzed := func(path string) bool {
		raw, err := i.client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(raw), `"type":"PassedAnalysis"`)
	}
	parts.Eventually(t, "each object has a condition", func() (missing error) {
		for _, p := range paths {
			if !analyzed(p) {
				missing = errors.Join(missing, fmt.Errorf("%s has none", p))
			}
		}
		return missing
	})
	events, err := i.client.EventsV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, e := range events.Items {
		of[e.Regarding.Kind+"/"+e.Regarding.Name+" "+e.Reason]++
	}
	for _, kind := range []string{"VirtualService", "WasmPlugin", "Telemetry"} {
		if of[kind+"/facts NotServed"] != 1 {
			t.Errorf("%s: %v", kind, of)
		}
	}
	if of["ProxyConfig/facts Refused"] != 1 {
		t.Errorf("ProxyConfig: %v", of)
	}
	before := pushes(t, pilotd)
	mended, paths := everyKind(false)
	cluster.Apply(mended)
	parts.Eventually(t, "no object has a condition any more", func() (left error) {
		for _, p := range paths {
			if analyzed(p) {
				left = errors.Join(left, fmt.Errorf("%s has one", p))
			}
		}
		return left
	})
	// What is read behind all that is a change, and the only one.
	const hosts = "{hosts: [facts.example"
	cluster.Apply(strings.Replace(mended, hosts+"], http:", hosts+", b.example], http:", 1))
	parts.Eventually(t, "a change of what is used is one", func() error {
		if n := pushes(t, pilotd); n != before+1 {
			return fmt.Errorf("%d changes led to a push", n-before)
		}
		return nil
	})
}

// pushes is how many changes have led to a push.
func pushes(t *testing.T, pilotd *parts.Pilotd) (all int) {
	t.Helper()
	page, err := pilotd.Debug("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^pilot_push_triggers\{[^}]*\} (\d+)$`).FindAllStringSubmatch(page, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		all += n
	}
	return all
}
