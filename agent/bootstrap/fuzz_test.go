package bootstrap

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotd/pilotd/agent/pod"
)

// FuzzNew has whatever a pod can say about itself be refused in one line, or become a bootstrap that Envoy's own checks
// take: with valid messages, and regular expressions that can be read.
func FuzzNew(f *testing.F) {
	f.Add("web", "{concurrency: 2}", "0r.*")
	f.Add(`{"NETWORK":"n1","A":{"b":[1,null]}}`, "", `2{"istio":[1,5]}`)
	f.Add("a\"b\\\n\tü\x00", "{tracing: {zipkin: {address: '[::1]:1'}}, runtimeValues: {a: ''}}", "0(")
	f.Add("=\xff", "proxyStatsMatcher: {inclusionRegexps: ['[']}", "1a(b,.*,\xff")
	f.Add(`{"LABELS":{"a":1}}`, "extraStatTags: ['']", `2{"":[0]}`)
	f.Add("[]", "proxyStatsMatcher: {inclusionPrefixes: ['']}", "0,,")
	annotations := []string{annotationRegexps, annotationTags, annotationBuckets}
	f.Fuzz(func(t *testing.T, value, config, annotation string) {
		env := []string{"POD_NAME=web", "POD_NAMESPACE=shop", "PROXY_CONFIG=" + config, "ISTIO_META_V=" + value}
		if strings.HasPrefix(value, "{") {
			env = append(env, "ISTIO_METAJSON_MORE="+value, "ISTIO_METAJSON_LABELS="+value)
		}
		name := annotations[0]
		if annotation != "" {
			name, annotation = annotations[int(annotation[0])%len(annotations)], annotation[1:]
		}
		s := pod.Source{Kind: pod.Router, Addresses: []netip.Addr{netip.MustParseAddr("10.1.1.1")}, Env: pod.NewEnv(env),
			Files: fstest.MapFS{
				"etc/istio/pod/labels":      {Data: fmt.Appendf(nil, "a/b.c-d=%q\n%s", value, value)},
				"etc/istio/pod/annotations": {Data: fmt.Appendf(nil, "%s=%q\n", name, annotation)}}}
		p, err := pod.Read(s)
		if err != nil {
			oneLine(t, err)
			return
		}
		b, err := New(Input{Pod: p, XDS: "/xds", SDS: "/sds"})
		if err != nil {
			oneLine(t, err)
			return
		}
		for _, tag := range b.StatsConfig.StatsTags {
			regexp.MustCompile(strings.ReplaceAll(tag.GetRegex(), `(?=\.)`, "")) // C++ reads that, Go does not
		}
		for _, m := range b.StatsConfig.StatsMatcher.GetInclusionList().Patterns {
			regexp.MustCompile(m.GetSafeRegex().GetRegex())
		}
		text, err := JSON(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := protojson.Unmarshal(text, &bootstrapv3.Bootstrap{}); err != nil {
			t.Fatal(err, string(text))
		}
		if text, err = GRPC(p, "/s", "/certs"); err != nil || !json.Valid(text) {
			t.Fatal(err, string(text))
		}
	})
}

// oneLine wants an error that a log shows in one line.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") {
		t.Fatalf("%q is not one line", text)
	}
}
