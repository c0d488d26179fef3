package gen_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"strconv"
	"strings"
	"testing"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/transcript"
)

var updateRoutes = flag.Bool("update-routes", false, "write the virtual hosts that come out into testdata/routes")

// TestRoutes holds the virtual host of each testdata/routes file against what stands in it. The comment is a line of
// settings: "port=80", "refused=01" (verdicts), "tls", "proxyless"; "virtualservice" is the spec, "rule HOST" a
// DestinationRule's, "target HOST" an alias's host and "only HOST" a single port.
func TestRoutes(t *testing.T) {
	transcript.Each(t, "testdata/routes/*.txtar", func(t *testing.T, a *transcript.File) {
		k := routesKey(t, a.Archive)
		got := virtualHostJSON(t, k)
		want := member(a.Archive, "virtualhost.json")
		if *updateRoutes {
			want.Data = got
			a.Write(t)
		} else if !bytes.Equal(got, want.Data) {
			t.Errorf("got\n%s\nwant\n%s", got, want.Data)
		}
	})
}

func member(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name})
	return &a.Files[len(a.Files)-1]
}

// routesKey returns the Key that a file describes.
func routesKey(t testing.TB, a *txtar.Archive) gen.VirtualHostKey {
	config := &meshconfig.MeshConfig{}
	for _, f := range a.Files {
		if f.Name == "mesh" {
			fromYAML(t, string(f.Data), config)
		}
	}
	mesh := istio.Mesh(config, "cluster.local", "")
	k := gen.VirtualHostKey{Host: "shop.example", Port: 80, Domains: "shop.example shop.example.", Mesh: mesh.Routes}
	for _, word := range strings.Fields(string(a.Comment)) {
		name, v, _ := strings.Cut(word, "=")
		switch name {
		case "port":
			k.Port, _ = strconv.Atoi(v)
		case "refused":
			k.Routes.Refused = gen.Verdicts(v)
		case "tls":
			k.Routes.TLS = true
		case "proxyless":
			k.Proxyless, k.Routes.Proxyless = true, true
		}
	}
	for _, f := range a.Files {
		name, host, _ := strings.Cut(f.Name, " ")
		d := gen.Destination{Host: host}
		switch name {
		case "virtualservice":
			spec := &networking.VirtualService{}
			fromYAML(t, string(f.Data), spec)
			k.Routes.Service = &value.VirtualService{Meta: value.Meta{Namespace: "shop", Name: "routes"},
				Routing: istio.Routing(spec)}
			continue
		case "rule":
			d.Rule = clusterRule(t, string(f.Data))
			if host == k.Host {
				k.Rule = d.Rule
			}
		case "target":
			d.Target = strings.TrimSpace(string(f.Data))
		case "only":
			d.Port, _ = strconv.Atoi(strings.TrimSpace(string(f.Data)))
		default:
			continue
		}
		k.Routes.Destinations = &gen.DestinationLink{Destination: d, Next: k.Routes.Destinations}
	}
	k.Routes.Port = k.Port
	return k
}

// virtualHostJSON returns the virtual host, valid, encoded alike every time, in JSON.
func virtualHostJSON(t testing.TB, k gen.VirtualHostKey) []byte {
	t.Helper()
	field, _ := gen.EncodeVirtualHost(k)
	for range 20 {
		if again, _ := gen.EncodeVirtualHost(k); !bytes.Equal(field, again) {
			t.Fatal("one content, two encodings")
		}
	}
	rc := &routepb.RouteConfiguration{}
	if err := proto.Unmarshal(field, rc); err != nil {
		t.Fatal(err)
	}
	if err := rc.ValidateAll(); err != nil {
		t.Error(err)
	}
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(rc.GetVirtualHosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

// BenchmarkVirtualHost is the cost of encoding one virtual host: that of a plain service, and one with the routes of a
// VirtualService.
func BenchmarkVirtualHost(b *testing.B) {
	mesh := istio.Mesh(&meshconfig.MeshConfig{}, "cluster.local", "")
	plain := gen.VirtualHostKey{Host: "web.shop.svc.cluster.local", Port: 80,
		Domains: "web.shop.svc.cluster.local web.shop.svc.cluster.local. web.shop web.shop.svc 10.0.0.1", Mesh: mesh.Routes}
	a, err := txtar.ParseFile("testdata/routes/weights.txtar")
	if err != nil {
		b.Fatal(err)
	}
	for name, k := range map[string]gen.VirtualHostKey{"plain": plain, "routes": routesKey(b, a)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				field, _ := gen.EncodeVirtualHost(k)
				b.SetBytes(int64(len(field)))
			}
		})
	}
}
