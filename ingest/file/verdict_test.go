package file

import (
	"fmt"
	"log/slog"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/crd"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

type noBuilder struct{}

// Apply drops a batch.
func (noBuilder) Apply(*snapshot.Delta) {}

// fromStore returns the field that the Store refuses of an object, or "".
func fromStore(key value.ObjectKey, object any) string {
	s := ingest.NewStore(noBuilder{}, ingest.Settings{Log: slog.New(slog.DiscardHandler)}, "x")
	s.Apply([]ingest.Event{{Source: "x", Key: key, Object: object}})
	if r := s.Rejections(); len(r) > 0 {
		return r[0].Field
	}
	return ""
}

// fromDirectory returns the field of a text that is refused when a directory has it, or "".
func fromDirectory(t *testing.T, text string) string {
	p := parseText("a.yaml", text)
	if len(p.problems) > 0 {
		return p.problems[0].field
	}
	if len(p.objects) != 1 {
		t.Fatalf("%d objects in\n%s", len(p.objects), text)
	}
	return fromStore(p.objects[0].key, p.objects[0].typed)
}

// fromAPIServer returns the field that is refused when the object is put into an API server that has Istio's CRDs: by
// the server, or by the Store.
func fromAPIServer(t *testing.T, kind value.Kind, text string) string {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := kjson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	if f, ok := crd.New().Judge(kind, object); !ok {
		return f.Field
	}
	pruned, err := kjson.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	typed := ingest.NewKindTable()[kind].New()
	if err := kjson.Unmarshal(pruned, typed); err != nil {
		t.Fatal(err)
	}
	return fromStore(value.ObjectKey{Kind: kind, Namespace: "a", Name: "x"}, typed)
}

// TestSameVerdictFromBothDoors: an object is refused for the same field, or in force, wherever it comes from.
func TestSameVerdictFromBothDoors(t *testing.T) {
	for _, c := range []struct {
		kind        value.Kind
		spec, field string
	}{
		{value.KindVirtualService, `{hosts: [web], http: [{route: [{destination: {host: web}}]}]}`, ""},
		{value.KindVirtualService, `{hosts: [web], http: [{route: [{destination: {}}]}]}`,
			"spec.http[0].route[0].destination.host"},
		{value.KindVirtualService,
			`{hosts: [web], http: [{match: [{uri: {regex: ""}}], route: [{destination: {host: web}}]}]}`,
			"spec.http[0].match[0].uri.regex"},
		{value.KindVirtualService,
			`{hosts: [web], http: [{match: [{uri: {regex: "a{1001}"}}], route: [{destination: {host: web}}]}]}`,
			"spec.http[0].match[0].uri.regex"},
		{value.KindVirtualService, `{hosts: [web], http: [{timeout: 0.1ms, route: [{destination: {host: web}}]}]}`,
			"spec.http[0].timeout"},
		{value.KindVirtualService,
			`{hosts: [web], http: [{headers: {request: {set: {x: "%FOO%"}}}, route: [{destination: {host: web}}]}]}`,
			"spec.http[0].headers.request.set.x"},
		{value.KindVirtualService, `{hosts: ["*.a.com", b.a.com], http: [{route: [{destination: {host: web}}]}]}`,
			"spec.hosts[1]"},
		{value.KindVirtualService, `{hosts: [web], http: [{nothing: 1, route: [{destination: {host: web}}]}]}`,
			"spec.http[0].nothing"},
		{value.KindVirtualService, `{hosts: [web], http: null, tcp: [{route: [{destination: {host: web}}]}]}`, ""},
		{value.KindDestinationRule, `{host: web, trafficPolicy: {loadBalancer: {simple: FASTEST}}}`,
			"spec.trafficPolicy.loadBalancer.simple"},
		{value.KindDestinationRule,
			`{host: web, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: ""}}}}`,
			"spec.trafficPolicy.loadBalancer.consistentHash.httpHeaderName"},
		{value.KindDestinationRule,
			`{host: web, trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 8388609}}}}}`,
			"spec.trafficPolicy.loadBalancer.consistentHash.ringHash.minimumRingSize"},
		{value.KindServiceEntry, `{hosts: ["*"], ports: [{number: 80, name: a, protocol: HTTP}]}`, "spec.hosts[0]"},
		{value.KindServiceEntry,
			`{hosts: [x.com], resolution: STATIC, ports: [{number: 80, name: a, protocol: HTTP}], endpoints: [{address: "fe80::1%eth0"}]}`,
			"spec.endpoints[0].address"},
		{value.KindServiceEntry,
			`{hosts: [x.com], resolution: STATIC, ports: [{number: 70000, name: a, protocol: HTTP}]}`,
			"spec.ports[0].number"},
		{value.KindWorkloadEntry, `{labels: {a: b}}`, "spec"},
		{value.KindWorkloadEntry, `{address: 10.0.0.1, weight: 4294967295}`, ""},
		{value.KindGateway, `{servers: [{port: {number: 443, name: t, protocol: TLS}, hosts: ["*foo.com"], tls: {mode: PASSTHROUGH}}]}`,
			"spec.servers[0].hosts[0]"},
		{value.KindGateway, `{servers: [{port: {number: 80, name: h, protocol: HTTP}}]}`, "spec.servers[0].hosts"},
		{value.KindSidecar, `{ingress: [{port: {number: 0, name: h, protocol: HTTP}, bind: "unix:///x", defaultEndpoint: "127.0.0.1:80"}]}`,
			"spec.ingress[0].port.number"},
		{value.KindPeerAuthentication, `{selector: {matchLabels: {app: web}}, portLevelMtls: {80: {mode: STRICT}}}`, ""},
		{value.KindPeerAuthentication, `{mtls: {mode: MAYBE}}`, "spec.mtls.mode"},
	} {
		text := fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: x, namespace: a}\nspec: %s\n", c.kind.Group(),
			c.kind.Name(), c.spec)
		directory, server := fromDirectory(t, text), fromAPIServer(t, c.kind, text)
		if directory != server || directory != c.field {
			t.Errorf("%s %s: a directory's is refused for %q, an API server's for %q, want %q", c.kind, c.spec,
				directory, server, c.field)
		}
	}
}
